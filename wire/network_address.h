#pragma once

#include "absl/status/statusor.h"
#include "base/ndk/network_address.h"
#include "rnicd/v1/connection_service.pb.h"

namespace rnicd::wire {

v1::NetworkAddress ToWire(const NetworkAddress& address);
// Errors: ADDRESS_INVALID for text that is no address, FIELD_OUT_OF_RANGE for a port above 65535.
absl::StatusOr<NetworkAddress> FromWire(const v1::NetworkAddress& address);

}  // namespace rnicd::wire
