#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/system/socket_io.h"

namespace rnicd {
namespace {

int64_t ResultOf(ssize_t result) {
  if (result >= 0) {
    return result;
  }
  return errno == EAGAIN || errno == EINTR ? kTryLater : kSocketFailed;
}

}  // namespace

// What was looked at is what is received: nobody else reads from the socket.
int64_t ReadSocket(int socket, std::span<char> buffer, bool refuses_descriptors) {
  if (refuses_descriptors) {
    return ResultOf(recv(socket, buffer.data(), buffer.size(), 0));
  }
  iovec part = {.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t size = recvmsg(socket, &message, MSG_PEEK);
  if (size <= 0) {
    return ResultOf(size);
  }
  // Without room for them the kernel says only that there are some.
  return (message.msg_flags & MSG_CTRUNC) != 0 ? 0
                                               : ResultOf(recv(socket, buffer.data(), static_cast<size_t>(size), 0));
}

int64_t SendSocket(int socket, std::string_view bytes) {
  ssize_t sent = 0;
  do {
    sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return ResultOf(sent);
}

void ShutDownSocket(int socket) { shutdown(socket, SHUT_RDWR); }

UniqueSocket CopySocket(const UniqueSocket& socket) { return UniqueSocket(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0)); }

}  // namespace rnicd
