#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ndk/network_address.h"

namespace rnicd::provider {

// Addresses that need no zone, of the network devices with this MAC address. As getifaddrs(3), which a daemon that
// serves may not call, because it names the receiver of its question.
// Source: rtnetlink(7).
std::vector<IpAddress> DeviceAddresses(std::span<const uint8_t> mac);

}  // namespace rnicd::provider
