#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "daemon/rpc/socket/poller.h"
#include "daemon/rpc/socket/socket_pair_fixture.h"

namespace rnicd::rpc {

std::pair<UniqueSocket, UniqueSocket> MakeSocketPair() {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {UniqueSocket(ends[0]), UniqueSocket(ends[1])};
}

bool WaitForSocket(int socket, uint32_t events, std::chrono::milliseconds limit) {
  const int bits = ((events & kReadable) != 0 ? POLLIN : 0) | ((events & kWritable) != 0 ? POLLOUT : 0);
  pollfd watched = {.fd = socket, .events = static_cast<int16_t>(bits), .revents = 0};
  return poll(&watched, 1, static_cast<int>(limit.count())) == 1;
}

}  // namespace rnicd::rpc
