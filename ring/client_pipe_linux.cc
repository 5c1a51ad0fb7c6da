#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "base/errno_status.h"
#include "base/status.h"
#include "ring/client_pipe.h"

namespace rnicd::ring {

absl::StatusOr<ClientPipe> ClientPipe::Create() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return MakeErrorWithDetail(ErrorReason::RINGS_UNAVAILABLE, ErrnoDetail("socketpair", errno));
  }
  ClientPipe pipe;
  pipe.read_.Reset(ends[0]);
  pipe.write_.Reset(ends[1]);
  // The client cannot send, and bytes that it does not read take little memory.
  const int few_bytes = 1;
  (void)shutdown(ends[1], SHUT_RD);
  (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &few_bytes, sizeof(few_bytes));
  return pipe;
}

void ClientPipe::Announce() const {
  const char byte = 1;
  // Failures are ignored: the client has closed its end, or the pipe is full, which is notification enough.
  [[maybe_unused]] const ssize_t sent = send(write_.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace rnicd::ring
