#include "tests/support/process/raw_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>

namespace rnicd::test {

UniqueFd ConnectUnix(const std::string& path, int type) {
  UniqueFd socket_fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return UniqueFd();
  }
  return socket_fd;
}

bool SendBytes(int socket_fd, std::string_view bytes) {
  const timeval timeout = {.tv_sec = 1, .tv_usec = 0};
  setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  return send(socket_fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
}

bool HangsUp(int socket_fd, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd watched = {.fd = socket_fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&watched, 1, static_cast<int>(left.count())) != 1) {
      return false;
    }
    std::array<char, 4096> buffer;
    // A reset counts as closed as well.
    if (recv(socket_fd, buffer.data(), buffer.size(), 0) <= 0) {
      return true;
    }
  }
}

}  // namespace rnicd::test
