#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

namespace foreign_peer {

// Where a queue pair is found, in the form that rnicd documents:
//     GID, 32 hex digits . QPN, 6 . PSN, 6 . LID, 4 . MTU code of enum ibv_mtu, 1 [ . origin, 8 ]
// A program that is no rnicd writes no origin, and reads over that of others.
struct Address {
  ibv_gid gid = {};
  uint32_t qpn = 0;
  uint32_t psn = 0;
  uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_1024;
};

std::string FormatAddress(const Address& address);
// Nothing when the text is not of that form.
std::optional<Address> ParseAddress(const std::string& text);

}  // namespace foreign_peer
