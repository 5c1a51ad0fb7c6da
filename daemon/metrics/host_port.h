#pragma once

#include <optional>
#include <string_view>

#include "daemon/metrics/kernel_socket.h"

namespace rnicd::metrics {

// "127.0.0.1" or "[::1]": a numeric address; in IPv4 without leading zeros, so that no number can be meant to be octal.
std::optional<SocketAddress> ParseHost(std::string_view text);
// "127.0.0.1:9747" or "[::]:9747": such an address and a port from 0 to 65535.
std::optional<SocketAddress> ParseHostPort(std::string_view text);
// Such a text without its port: "[::1]" of "[::1]:9747" and of "[::1]".
std::string_view HostPart(std::string_view text);

// Whether only programs of this machine have this address: 127.0.0.0/8, also as ::ffff:127.0.0.0/104, and ::1.
bool IsLoopback(const SocketAddress& address);

}  // namespace rnicd::metrics
