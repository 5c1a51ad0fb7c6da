#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include "base/errno_status.h"
#include "daemon/metrics/kernel_socket.h"

namespace rnicd::metrics {

static_assert(AF_INET == kIpv4Family && sizeof(sockaddr_in) == sizeof(SocketAddress));
static_assert(offsetof(sockaddr_in, sin_port) == 2 && offsetof(sockaddr_in, sin_addr) == 4);

void ShutDown(int socket) {
  const linger none = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  shutdown(socket, SHUT_RDWR);
}

void LimitKernel(int socket, std::chrono::nanoseconds time) {
  const auto milliseconds = static_cast<unsigned>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
  constexpr int kBytes = 64 << 10;
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kBytes, sizeof(kBytes));
}

std::string SocketErrorDetail(std::string_view address) { return ErrnoDetail(address, errno); }

}  // namespace rnicd::metrics
