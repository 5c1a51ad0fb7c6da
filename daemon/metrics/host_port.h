#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "daemon/metrics/kernel_socket.h"

namespace rnicd::metrics {

// "127.0.0.1": four decimal numbers up to 255, without leading zeros, so that no number can be meant to be octal.
std::optional<uint32_t> ParseIpv4(std::string_view text);
// "127.0.0.1:9747": such an address and a port from 0 to 65535.
std::optional<Ipv4Address> ParseHostPort(std::string_view text);

}  // namespace rnicd::metrics
