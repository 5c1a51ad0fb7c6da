#include "wire/network_address.h"

#include <cstdint>
#include <optional>

#include "base/status.h"

namespace rnicd::wire {

v1::NetworkAddress ToWire(const NetworkAddress& address) {
  v1::NetworkAddress message;
  message.set_address(address.ip.ToText());
  message.set_port(address.port);
  return message;
}

absl::StatusOr<NetworkAddress> FromWire(const v1::NetworkAddress& address) {
  const std::optional<IpAddress> ip = IpAddress::FromText(address.address());
  if (!ip.has_value()) {
    return MakeError(ErrorReason::ADDRESS_INVALID, "address");
  }
  if (address.port() > UINT16_MAX) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "port");
  }
  return NetworkAddress{.ip = *ip, .port = static_cast<uint16_t>(address.port())};
}

}  // namespace rnicd::wire
