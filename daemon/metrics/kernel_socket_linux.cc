#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/errno_status.h"
#include "base/files/unique_fd.h"
#include "daemon/metrics/kernel_socket.h"

namespace rnicd::metrics {

static_assert(AF_INET == kIpv4Family && sizeof(sockaddr_in6) == sizeof(SocketAddress));
static_assert(offsetof(sockaddr_in, sin_port) == 2 && offsetof(sockaddr_in, sin_addr) == 4);
static_assert(offsetof(sockaddr_in6, sin6_port) == 2 && offsetof(sockaddr_in6, sin6_addr) == 8);

const uint16_t kIpv6Family = AF_INET6;

bool ParseNumericHost(uint16_t family, const std::string& text, unsigned char* host) {
  return inet_pton(family, text.c_str(), host) == 1;
}

bool HasIpv6() {
  const UniqueFd probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return probe.valid() || errno != EAFNOSUPPORT;
}

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

std::string SocketErrorDetail(std::string_view address) {
  const int error = errno;
  return absl::StrCat(
      ErrnoDetail(address, error),
      error == EACCES ? "; ports below 1024 need a privilege, which the daemon gives up at its start" : "");
}

}  // namespace rnicd::metrics
