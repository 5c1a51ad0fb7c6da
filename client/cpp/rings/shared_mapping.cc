#include "client/cpp/rings/shared_mapping.h"

#include <utility>

#include "base/status.h"
#include "base/system/os.h"
#include "base/system/this_process.h"
#include "client/cpp/channel/fd_socket.h"
#include "client/cpp/rings/system_memory.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {

absl::StatusOr<SharedMapping> SharedMapping::Fetch(const std::string& fd_socket_path, const std::string& ticket,
                                                   uint64_t file_bytes, std::chrono::milliseconds deadline) {
  RNICD_ASSIGN_OR_RETURN(const UniqueFd fd, FetchDescriptor(fd_socket_path, ticket, deadline));
  return Map(fd.get(), file_bytes);
}

absl::StatusOr<SharedMapping> SharedMapping::Map(int fd, uint64_t file_bytes) {
  // A file shorter than its mapping would raise SIGBUS on first use instead of failing here.
  if (file_bytes == 0 || FileBytes(fd).value_or(0) < file_bytes) {
    return TransportFailure(absl::StatusCode::kInternal, "the shared memory is shorter than announced");
  }
  absl::StatusOr<std::span<std::byte>> bytes = SystemOs().Map(fd, file_bytes);
  if (!bytes.ok()) {
    return TransportFailure(absl::StatusCode::kResourceExhausted, "the shared memory cannot be mapped");
  }
  SharedMapping mapping(*bytes);
  if (!KeepFromChildren(*bytes)) {
    return TransportFailure(absl::StatusCode::kInternal, "the shared memory cannot be kept from children");
  }
  return mapping;
}

SharedMapping::SharedMapping(std::span<std::byte> bytes) : bytes_(bytes), process_(ProcessId()) {}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), process_(other.process_) {}

SharedMapping::~SharedMapping() {
  if (!bytes_.empty() && IsOfThisProcess()) {
    SystemOs().Unmap(bytes_).IgnoreError();
  }
}

bool SharedMapping::IsOfThisProcess() const { return ProcessId() == process_; }

}  // namespace rnicd::inline client
