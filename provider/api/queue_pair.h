#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "base/error_reason.h"
#include "base/ndk/access_rights.h"
#include "base/ndk/operation_type.h"
#include "base/ndk/queue_pair.h"
#include "base/ntstatus.h"
#include "base/units.h"

namespace rnicd::provider {

class DeviceMemoryRegion;

// A key under which work requests repeatedly register pages; between registrations it reaches no memory.
// Lifetime: shared by its owner and the requests that name it; outlived by its protection domain.
// Threads:  safe.
class DeviceFastRegion {
 public:
  virtual ~DeviceFastRegion() = default;
  // Constant for the life of the region.
  virtual LocalToken local_token() const = 0;
  // Token of the last FastRegisterWork accepted by a queue pair; before the first, a token that matches no memory.
  virtual RemoteToken remote_token() const = 0;
  // True between the execution of a FastRegisterWork and that of its invalidation.
  virtual bool registered() const = 0;
  // Permanently ends the registration, if any: when it returns, transfers no longer reach the pages, and requests that
  // name the region fail when executed.
  virtual void Retire() = 0;
};

// A window onto a memory region, of the kind that works through one queue pair (type 2). Lifetime, threads, Retire: as
// DeviceFastRegion.
// Source: ibv_alloc_mw(3).
class DeviceMemoryWindow {
 public:
  virtual ~DeviceMemoryWindow() = default;
  // Token of the last BindWork accepted by a queue pair; before the first, a token that matches no memory.
  virtual RemoteToken remote_token() const = 0;
  virtual void Retire() = 0;
};

// One memory segment of a request: either bytes of this process, or an address within the region of a local token.
struct ScatterGatherEntry {
  // The bytes themselves; if not null, token and address are ignored.
  std::span<std::byte> host;
  VirtualAddress address;
  uint32_t length = 0;
  LocalToken token;
};
// Up to this many segments, or as many bytes of inline data as fit into their place, need no allocation. Every request
// in a queue takes this room, whether it uses it or not.
inline constexpr size_t kInlineEntries = 4;
using Entries = absl::InlinedVector<ScatterGatherEntry, kInlineEntries>;
using InlineData = absl::InlinedVector<std::byte, kInlineEntries * sizeof(ScatterGatherEntry)>;

struct SendWork {
  bool solicit = false;
  // Token of the receiver, invalidated before its receive completes.
  std::optional<RemoteToken> invalidate;
};
struct ReceiveWork {};
struct ReadWork {
  VirtualAddress remote_address;
  RemoteToken remote_token;
  // Invalidate the registration of the first entry's token after the bytes have arrived.
  bool local_invalidate = false;
};
struct WriteWork {
  VirtualAddress remote_address;
  RemoteToken remote_token;
};
struct FastRegisterWork {
  std::shared_ptr<DeviceFastRegion> region;
  VirtualAddress base;
  uint64_t length = 0;
  AccessRights rights;
  // Memory that, laid end to end, becomes [base, base + length). Populated; stays mapped while `backing` lives. A view,
  // because room for many runs in each queued request would cost more than the allocation of `backing`.
  std::span<const std::span<std::byte>> runs;
  // Keeps the list of runs, and what they name mapped; released when the device no longer reaches them: after the
  // invalidation or a failure.
  std::shared_ptr<const void> backing;
};
struct InvalidateWork {
  // Exactly one of region and window is set.
  std::shared_ptr<DeviceFastRegion> region;
  std::shared_ptr<DeviceMemoryWindow> window;
};
struct BindWork {
  std::shared_ptr<DeviceMemoryWindow> window;
  std::shared_ptr<DeviceMemoryRegion> region;
  VirtualAddress base;
  uint64_t length = 0;
  AccessRights rights;
  // Keeps the region; released when the window is no longer bound to it, or after a failure.
  std::shared_ptr<const void> backing;
};

// One request, validated by core.
struct WorkRequest {
  uint64_t request_context = 0;
  bool silent_success = false;
  bool read_fence = false;
  std::variant<Entries, InlineData> payload;
  // Keeps the memory behind the segments; released when the request is complete.
  std::shared_ptr<const void> keep_alive;
  std::variant<SendWork, ReceiveWork, ReadWork, WriteWork, FastRegisterWork, InvalidateWork, BindWork> work;

  // Segments of the payload; none if it is inline data.
  std::span<const ScatterGatherEntry> entries() const {
    const auto* const entries = std::get_if<Entries>(&payload);
    return entries != nullptr ? std::span<const ScatterGatherEntry>(*entries) : std::span<const ScatterGatherEntry>();
  }
};

// Result of a request.
struct Completion {
  uint64_t request_context = 0;
  // Number of the request in its queue, from 1, modulo 2^32.
  uint32_t number = 0;
  OperationType type = OperationType::kSend;
  NtStatus status = NtStatus::kSuccess;
  // With EnqueueRefused: the reason of the refusal. Otherwise UNSPECIFIED.
  ErrorReason refusal = ErrorReason::UNSPECIFIED;
  // With kAccessViolation: the peer's memory refused the access, not this side's.
  bool at_peer = false;
  // Bytes received, for a receive that succeeded.
  uint32_t bytes = 0;
  // Invalidated token, with kReceiveAndInvalidate.
  RemoteToken invalidated;
  // True for a receive whose sender requested a solicited event (the receiver is woken).
  bool solicited = false;
};

enum class WorkQueue : uint8_t { kInitiator, kReceive };

// Callbacks of a queue pair.
// Lifetime: outlives the queue pair, or at least its Shutdown.
// Threads:  called from any thread, one call at a time for each of the two queues. Must be quick and must not call any
//           queue pair.
class QueuePairListener {
 public:
  virtual ~QueuePairListener() = default;
  // In posting order within a queue.
  virtual void OnCompletion(WorkQueue queue, const Completion& completion) = 0;
  // The peer disconnected, failed or died; called at most once.
  virtual void OnPeerDisconnected() = 0;
};

// Hardware side of a completion queue; core keeps the completions themselves.
// Source: ibv_create_cq(3).
class DeviceCompletionQueue {
 public:
  virtual ~DeviceCompletionQueue() = default;
  // Errors: DEVICE_OUT_OF_RESOURCES, DEVICE_FAILED.
  virtual absl::Status Resize(uint32_t depth) = 0;
};

using rnicd::QueuePairLimits;
using rnicd::QueuePairState;

// Two queues of requests to one peer, reliable and in order (RC).
//
// Each queue is executed in order; a request begins when the effects of the previous one are visible, except that
// earlier reads may still be in progress unless a read fence waits for them. A request that fails is reported, takes
// the pair to kError, and all others complete with kCancelled, silent ones included. An access that the peer's memory
// does not permit takes the peer to kError as well. A send without a receive at the peer waits for one.
// Lifetime: outlived by its protection domain and completion queues.
// Threads: safe.
// Source:   ibv_create_qp(3), ibv_post_send(3).
class DeviceQueuePair {
 public:
  virtual ~DeviceQueuePair() = default;
  virtual QueuePairState state() const = 0;
  // Address for the peer's Connect; opaque, at most 64 bytes.
  virtual std::string address() const = 0;
  // Enters kReadyToSend. Requests that need the peer wait until the peer has connected to this queue pair.
  // Errors: QP_NOT_CONNECTABLE, QP_ADDRESS_UNKNOWN.
  virtual absl::Status Connect(std::string_view peer_address) = 0;
  // Accepts a request, which begins at the latest with the next Kick. Returns the new remote token of a
  // FastRegisterWork or BindWork, otherwise 0. A refusal changes nothing. Errors: QUEUE_FULL; QP_NOT_CONNECTED (for
  // receives only once Shutdown has begun); those of DeviceProtectionDomain::RegisterMemory if memory must be
  // registered for the request. `request` is moved from, also where it is refused late.
  virtual absl::StatusOr<RemoteToken> Enqueue(WorkRequest&& request) = 0;
  // Accepts a request that was refused, so that it completes in its place in the queue: with the status and reason of
  // `refusal`, which takes the pair to kError, or after another failure with kCancelled. An initiator request does so
  // when all before it have ended, a receive or a request before Connect with the next Kick. A queue has room for one
  // of them above its depth. Without room nothing happens: the pair is in kError, or will be with the one before.
  virtual void EnqueueRefused(const Completion& refusal) = 0;
  virtual void Kick() = 0;
  // Enters kError; every request completes, possibly after Flush has returned.
  virtual void Flush() = 0;
  // Flushes, and returns when no transfer to or from this queue pair is in progress.
  virtual void Disconnect() = 0;
  // Disconnects, and reports nothing after it has returned. The destructor does the same.
  virtual void Shutdown() = 0;
};

}  // namespace rnicd::provider
