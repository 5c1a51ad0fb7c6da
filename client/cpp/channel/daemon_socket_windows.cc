#include <winsock2.h>

#include <algorithm>
#include <chrono>
#include <climits>

#include "client/cpp/channel/daemon_socket.h"

namespace rnicd::inline client {
namespace {

bool Await(int socket, SHORT events, Instant deadline) {
  WSAPOLLFD wait = {.fd = static_cast<SOCKET>(socket), .events = events, .revents = 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Instant::clock::now()).count();
  return WSAPoll(&wait, 1, static_cast<INT>(std::clamp<int64_t>(left, 0, INT_MAX))) != 0;
}

}  // namespace

bool AwaitSocket(int socket, bool also_writable, Instant deadline) {
  return Await(socket, also_writable ? POLLRDNORM | POLLWRNORM : POLLRDNORM, deadline);
}

bool AwaitWritable(int socket, Instant deadline) { return Await(socket, POLLWRNORM, deadline); }

}  // namespace rnicd::inline client
