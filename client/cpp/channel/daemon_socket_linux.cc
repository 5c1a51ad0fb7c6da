#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "client/cpp/channel/daemon_socket.h"

namespace rnicd::inline client {
namespace {

bool Await(int socket, int16_t events, Instant deadline) {
  pollfd wait = {.fd = socket, .events = events, .revents = 0};
  for (;;) {
    const auto left = std::max<std::chrono::nanoseconds>(deadline - Instant::clock::now(), std::chrono::nanoseconds(0));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout = {.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    const int ready = ppoll(&wait, 1, &timeout, nullptr);
    if (ready >= 0 || errno != EINTR) {
      return ready != 0;
    }
  }
}

}  // namespace

bool AwaitSocket(int socket, bool also_writable, Instant deadline) {
  return Await(socket, also_writable ? POLLIN | POLLOUT : POLLIN, deadline);
}

bool AwaitWritable(int socket, Instant deadline) { return Await(socket, POLLOUT, deadline); }

}  // namespace rnicd::inline client
