#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <infiniband/verbs.h>

namespace rnicd::provider {

// How a queue pair is found on the wire, as text that any side channel can carry:
//
//     fe80000000000000b89a2cfffe0d5c11.000011.1a2b3c.0000.5.8f31c2d4
//     GID, 32 hex digits               QPN    PSN    LID  MTU origin
//
// QPN and PSN are 24 bits, MTU is the code of enum ibv_mtu (1: 256 bytes to 5: 4096). The origin, 8 hex digits, names
// the daemon that made the queue pair; a program that is no rnicd leaves out its last dot and it. At most 62 bytes.
struct QpAddress {
  ibv_gid gid = {};
  uint32_t qpn = 0;
  uint32_t psn = 0;
  uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  // 0: not made by a daemon.
  uint32_t origin = 0;
};

std::string FormatQpAddress(const QpAddress& address);
// Nothing when the text is not of that form, or a number in it is out of range. Hex digits of either case.
std::optional<QpAddress> ParseQpAddress(std::string_view text);

}  // namespace rnicd::provider
