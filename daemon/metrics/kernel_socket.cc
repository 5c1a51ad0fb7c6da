#include "daemon/metrics/kernel_socket.h"

#include <cstddef>
#include <cstring>

namespace rnicd::metrics {

SocketAddress HostOf(const void* address) {
  SocketAddress host;
  if (address == nullptr) {
    return host;
  }
  const auto* const bytes = static_cast<const unsigned char*>(address);
  std::memcpy(&host.family, bytes, sizeof(host.family));
  if (host.family == kIpv6Family) {
    std::memcpy(host.ipv6, bytes + offsetof(SocketAddress, ipv6), sizeof(host.ipv6));
  } else if (host.family == kIpv4Family) {
    std::memcpy(host.ipv4, bytes + offsetof(SocketAddress, ipv4), sizeof(host.ipv4));
  }
  return host;
}

}  // namespace rnicd::metrics
