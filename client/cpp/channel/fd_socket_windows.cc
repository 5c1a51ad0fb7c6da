#include "base/status.h"
#include "client/cpp/channel/daemon_pipe_windows.h"
#include "client/cpp/channel/fd_socket.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {

absl::StatusOr<UniqueFd> FetchDescriptor(const std::string& address, const std::string& fd_ticket,
                                         std::chrono::milliseconds deadline) {
  const Instant limit = Instant::clock::now() + deadline;
  RNICD_ASSIGN_OR_RETURN(DaemonPipe pipe, DaemonPipe::Open(address, limit));
  v1::PipeRequest request;
  request.mutable_take_section()->set_fd_ticket(fd_ticket);
  RNICD_ASSIGN_OR_RETURN(const v1::PipeReply reply, pipe.Ask(request, limit));
  if (reply.handle() == 0) {
    return TransportFailure(absl::StatusCode::kInternal, "the reply on the daemon's pipe has no handle");
  }
  return UniqueFd(static_cast<int>(reply.handle()));
}

absl::Status SendDescriptor(const std::string& address, const std::string& fd_ticket, int fd,
                            std::chrono::milliseconds deadline) {
  if (fd <= 0) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "fd");
  }
  const Instant limit = Instant::clock::now() + deadline;
  RNICD_ASSIGN_OR_RETURN(DaemonPipe pipe, DaemonPipe::Open(address, limit));
  v1::PipeRequest request;
  request.mutable_give_section()->set_fd_ticket(fd_ticket);
  request.mutable_give_section()->set_handle(static_cast<uint32_t>(fd));
  return pipe.Ask(request, limit).status();
}

}  // namespace rnicd::inline client
