#include <winsock2.h>
// Behind winsock2.h, whose types it uses.
#include <ws2tcpip.h>

#include <cstddef>

#include "base/windows_status.h"
#include "daemon/metrics/kernel_socket.h"

namespace rnicd::metrics {

static_assert(AF_INET == kIpv4Family && sizeof(sockaddr_in6) == sizeof(SocketAddress));
static_assert(offsetof(sockaddr_in, sin_port) == 2 && offsetof(sockaddr_in, sin_addr) == 4);
static_assert(offsetof(sockaddr_in6, sin6_port) == 2 && offsetof(sockaddr_in6, sin6_addr) == 8);

const uint16_t kIpv6Family = AF_INET6;

bool ParseNumericHost(uint16_t family, const std::string& text, unsigned char* host) {
  return inet_pton(family, text.c_str(), host) == 1;
}

// Every supported Windows has them.
bool HasIpv6() { return true; }

namespace {

SOCKET Native(int socket) { return static_cast<SOCKET>(socket); }

}  // namespace

void ShutDown(int socket) {
  const linger none = {.l_onoff = 1, .l_linger = 0};
  setsockopt(Native(socket), SOL_SOCKET, SO_LINGER, reinterpret_cast<const char*>(&none), sizeof(none));
  shutdown(Native(socket), SD_BOTH);
}

void LimitKernel(int socket, std::chrono::nanoseconds /*time*/) {
  constexpr int kBytes = 64 << 10;
  setsockopt(Native(socket), SOL_SOCKET, SO_SNDBUF, reinterpret_cast<const char*>(&kBytes), sizeof(kBytes));
}

std::string SocketErrorDetail(std::string_view address) {
  return WindowsDetail(address, static_cast<uint32_t>(WSAGetLastError()));
}

}  // namespace rnicd::metrics
