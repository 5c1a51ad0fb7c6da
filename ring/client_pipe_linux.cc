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
  // What a client would send stays with it; and what it does not read takes little memory.
  const int few_bytes = 1;
  (void)shutdown(ends[1], SHUT_RD);
  (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &few_bytes, sizeof(few_bytes));
  return pipe;
}

void ClientPipe::Announce() const {
  const char byte = 1;
  // A client that has closed its end does not want to know.
  [[maybe_unused]] const ssize_t sent = send(write_.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace rnicd::ring
