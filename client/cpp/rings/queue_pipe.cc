#include "client/cpp/rings/queue_pipe.h"

#include "base/status.h"
#include "client/cpp/channel/fd_socket.h"
#include "client/cpp/rings/system_memory.h"

namespace rnicd::inline client {

absl::StatusOr<QueuePipe> QueuePipe::Fetch(const std::string& fd_socket_path, const std::string& ticket,
                                           std::chrono::milliseconds deadline) {
  RNICD_ASSIGN_OR_RETURN(UniqueFd pipe, FetchDescriptor(fd_socket_path, ticket, deadline));
  return QueuePipe(std::move(pipe));
}

void QueuePipe::Wait(std::chrono::nanoseconds time) const { WaitForPipe(pipe_.get(), time); }

bool QueuePipe::Drain() const { return DrainPipe(pipe_.get()); }

}  // namespace rnicd::inline client
