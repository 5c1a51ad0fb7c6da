#include "daemon/metrics/kernel_socket.h"

#include <cstring>

namespace rnicd::metrics {

SocketAddress ToSocketAddress(const Ipv4Address& address) {
  SocketAddress native = {.family = kIpv4Family};
  for (size_t index = 0; index < sizeof(native.port); ++index) {
    native.port[index] = static_cast<unsigned char>(address.port >> (8 * (sizeof(native.port) - 1 - index)));
  }
  for (size_t index = 0; index < sizeof(native.host); ++index) {
    native.host[index] = static_cast<unsigned char>(address.host >> (8 * (sizeof(native.host) - 1 - index)));
  }
  return native;
}

std::optional<Ipv4Address> Ipv4Of(const void* address) {
  SocketAddress native;
  if (address != nullptr) {
    std::memcpy(&native.family, address, sizeof(native.family));
  }
  if (native.family != kIpv4Family) {
    return std::nullopt;
  }
  std::memcpy(&native, address, sizeof(native));
  Ipv4Address parsed;
  for (const unsigned char byte : native.port) {
    parsed.port = static_cast<uint16_t>(parsed.port << 8 | byte);
  }
  for (const unsigned char byte : native.host) {
    parsed.host = parsed.host << 8 | byte;
  }
  return parsed;
}

}  // namespace rnicd::metrics
