#include <gtest/gtest.h>
#include <winsock2.h>

#include "base/system/winsock.h"
#include "daemon/rpc/socket/poller.h"
#include "daemon/rpc/socket/socket_pair_fixture.h"

namespace rnicd::rpc {
namespace {

// The buffers are as large as those of a Unix socket on Linux, so that a client who does not read is noticed as soon.
constexpr int kBufferBytes = 200 << 10;

void Prepare(SOCKET socket) {
  u_long non_blocking = 1;
  EXPECT_EQ(ioctlsocket(socket, static_cast<long>(FIONBIO), &non_blocking), 0);
  const BOOL no_delay = TRUE;
  EXPECT_EQ(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, reinterpret_cast<const char*>(&no_delay), sizeof(no_delay)),
            0);
  const auto* const bytes = reinterpret_cast<const char*>(&kBufferBytes);
  for (const int option : {SO_SNDBUF, SO_RCVBUF}) {
    EXPECT_EQ(setsockopt(socket, SOL_SOCKET, option, bytes, sizeof(kBufferBytes)), 0);
  }
}

}  // namespace

std::pair<UniqueSocket, UniqueSocket> MakeSocketPair() {
  EXPECT_TRUE(StartWinsock());
  const SOCKET listener = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
  const SOCKET first = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int bytes = sizeof(address);
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  EXPECT_EQ(listen(listener, 1), 0);
  EXPECT_EQ(connect(first, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const SOCKET second = accept(listener, nullptr, nullptr);
  EXPECT_NE(second, INVALID_SOCKET);
  closesocket(listener);
  Prepare(first);
  Prepare(second);
  return {UniqueSocket(static_cast<int>(first)), UniqueSocket(static_cast<int>(second))};
}

bool WaitForSocket(int socket, uint32_t events, std::chrono::milliseconds limit) {
  const int bits = ((events & kReadable) != 0 ? POLLRDNORM : 0) | ((events & kWritable) != 0 ? POLLWRNORM : 0);
  WSAPOLLFD watched = {.fd = static_cast<SOCKET>(socket), .events = static_cast<SHORT>(bits), .revents = 0};
  return WSAPoll(&watched, 1, static_cast<int>(limit.count())) == 1;
}

}  // namespace rnicd::rpc
