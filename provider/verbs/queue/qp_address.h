#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <infiniband/verbs.h>

namespace rnicd::provider {

// Network address of a queue pair, as text that any side channel can carry:
//
//     fe80000000000000b89a2cfffe0d5c11.000011.1a2b3c.0000.5.8f31c2d4
//     GID, 32 hex digits               QPN    PSN    LID  MTU origin
//
// QPN and PSN are 24 bits, MTU is the code of enum ibv_mtu (1: 256 bytes to 5: 4096). The origin, 8 hex digits,
// identifies the daemon that created the queue pair; programs other than rnicd omit it and the dot before it. At most
// 62 bytes.
struct QpAddress {
  ibv_gid gid = {};
  uint32_t qpn = 0;
  uint32_t psn = 0;
  uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  // Daemon that created the queue pair; 0 if none did.
  uint32_t origin = 0;
};

std::string FormatQpAddress(const QpAddress& address);
// nullopt when the text does not have this form or a number is out of range. Accepts hex digits of either case.
std::optional<QpAddress> ParseQpAddress(std::string_view text);

}  // namespace rnicd::provider
