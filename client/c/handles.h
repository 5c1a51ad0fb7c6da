#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/ndk/post_outcome.h"
#include "base/ndk/work_request.h"
#include "base/status.h"
#include "base/system/this_process.h"
#include "client/c/result.h"
#include "client/c/rnicd.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/memory_window.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::c {

// What every handle begins with but that of a chain.
struct Handle {
  // The process that made it.
  const int32_t process = ProcessId();
};

// A handle that is an object of librnicd.
template <typename Object>
struct HandleOf : Handle {
  explicit HandleOf(Object made) : object(std::move(made)) {}
  Object object;
};

}  // namespace rnicd::c

struct rnicd_session : rnicd::c::HandleOf<rnicd::Client> {
  using HandleOf::HandleOf;
  // For rnicd_tenant.
  const std::string tenant = object.tenant();
  // RNICD_THREAD.
  bool has_thread = false;
};
struct rnicd_memory : rnicd::c::HandleOf<rnicd::Memory> {
  using HandleOf::HandleOf;
};
// Empty only while it waits for the region of an asynchronous registration.
struct rnicd_mr : rnicd::c::HandleOf<std::optional<rnicd::MemoryRegion>> {
  using HandleOf::HandleOf;
};
struct rnicd_fast_mr : rnicd::c::HandleOf<rnicd::FastRegion> {
  using HandleOf::HandleOf;
};
struct rnicd_mapping : rnicd::c::HandleOf<rnicd::LogicalMapping> {
  using HandleOf::HandleOf;
  const rnicd::FastRegistration registration = object.AsRegistration();
};
struct rnicd_mw : rnicd::c::HandleOf<rnicd::MemoryWindow> {
  using HandleOf::HandleOf;
};
struct rnicd_cq : rnicd::c::HandleOf<rnicd::CompletionQueue> {
  using HandleOf::HandleOf;
};
struct rnicd_qp : rnicd::c::HandleOf<rnicd::QueuePair> {
  using HandleOf::HandleOf;
};

namespace rnicd::c {

// Errors: FIELD_OUT_OF_RANGE for a null pointer; for a handle in a child made by fork the transport failure of such.
inline absl::Status CheckOne(const char* name, const void* pointer) {
  return pointer != nullptr ? absl::OkStatus() : MakeError(ErrorReason::FIELD_OUT_OF_RANGE, name);
}
inline absl::Status CheckProcess(const Handle& handle) {
  return handle.process == ProcessId() ? absl::OkStatus()
                                       : TransportFailure(absl::StatusCode::kFailedPrecondition,
                                                          "the session belongs to the process before fork");
}
inline absl::Status CheckOne(const char* name, const Handle* handle) {
  return handle != nullptr ? CheckProcess(*handle) : MakeError(ErrorReason::FIELD_OUT_OF_RANGE, name);
}

// The same for several: CheckGiven("session", session, "memory", memory).
inline absl::Status CheckGiven() { return absl::OkStatus(); }
template <typename Given, typename... Rest>
absl::Status CheckGiven(const char* name, Given* given, Rest... rest) {
  if constexpr (std::is_convertible_v<Given*, const Handle*>) {
    RNICD_RETURN_IF_ERROR(CheckOne(name, static_cast<const Handle*>(given)));
  } else {
    RNICD_RETURN_IF_ERROR(CheckOne(name, static_cast<const void*>(given)));
  }
  return CheckGiven(rest...);
}

// Errors: FIELD_OUT_OF_RANGE for a flag that is not in `known`.
inline absl::Status CheckFlags(uint32_t flags, uint32_t known, const char* name) {
  return (flags & ~known) == 0 ? absl::OkStatus() : MakeError(ErrorReason::FIELD_OUT_OF_RANGE, name);
}

// Wait of a timeout of the interface; about a year for one without end, which overflows no clock.
inline std::chrono::milliseconds WaitOf(int timeout_ms) {
  return timeout_ms < 0 ? std::chrono::hours(24 * 365) : std::chrono::milliseconds(timeout_ms);
}

// A new handle for the caller.
template <typename To, typename Object>
absl::Status Give(absl::StatusOr<Object> made, To** to) {
  RNICD_RETURN_IF_ERROR(made.status());
  *to = std::make_unique<To>(*std::move(made)).release();
  return absl::OkStatus();
}

// The failure of an item of a batch, which the daemon names "items[N].length", by the name of the caller's array.
absl::Status OfItem(const absl::Status& failure, std::string_view name, size_t index);

// New handles for the caller's array, which has null pointers. Errors: the first failure, of "name[N]".
template <typename To, typename Object>
absl::Status GiveEach(std::vector<absl::StatusOr<Object>> made, To** to, std::string_view name) {
  std::vector<std::unique_ptr<To>> handles(made.size());
  absl::Status outcome;
  for (size_t index = 0; index < made.size(); ++index) {
    if (made[index].ok()) {
      handles[index] = std::make_unique<To>(*std::move(made[index]));
    } else if (outcome.ok()) {
      outcome = OfItem(made[index].status(), name, index);
    }
  }
  for (size_t index = 0; index < handles.size(); ++index) {
    to[index] = handles[index].release();
  }
  return outcome;
}

// The body of rnicd_close_*: frees the handle in every case. `close` returns the daemon's outcome; what that did not
// release the object's destructor does. In a child made by fork only the destructor runs.
template <typename To, typename Close>
int CloseHandle(To* handle, const Close& close) noexcept {
  if (handle == nullptr) {
    return 0;
  }
  return Run([&] {
    const std::unique_ptr<To> freed(handle);
    absl::Status outcome = CheckProcess(*handle);
    if (outcome.ok()) {
      outcome = close(handle->object);
    }
    return outcome;
  });
}

// The part of a memory. Errors: MDL_RANGE_OUTSIDE_MEMORY.
absl::StatusOr<std::span<const std::byte>> PartOf(const rnicd_memory& memory, uint64_t offset, uint64_t length);
// The entries of a chain. Errors: as CheckGiven and PartOf, of "chain[N]".
absl::StatusOr<std::vector<MdlEntry>> EntriesOf(const rnicd_mdl* chain, uint32_t count);
// Errors: FIELD_OUT_OF_RANGE.
absl::StatusOr<AllocateOptions> MemoryOptionsOf(const rnicd_memory_options* given);

}  // namespace rnicd::c
