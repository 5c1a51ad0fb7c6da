#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

namespace foreign_peer {

// Address of a queue pair, in the form that rnicd documents:
//     GID, 32 hex digits . QPN, 6 . PSN, 6 . LID, 4 . MTU code of enum ibv_mtu, 1 [ . origin, 8 ]
// A program other than rnicd writes no origin, and ignores it in other addresses.
struct Address {
  ibv_gid gid = {};
  uint32_t qpn = 0;
  uint32_t psn = 0;
  uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_1024;
};

std::string FormatAddress(const Address& address);
// Nullopt if the text does not have this form.
std::optional<Address> ParseAddress(const std::string& text);

}  // namespace foreign_peer
