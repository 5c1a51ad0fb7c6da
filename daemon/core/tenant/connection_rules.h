#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/ndk/network_address.h"

namespace rnicd::core {

// Addresses and ports, both ends included.
struct AddressRange {
  IpPrefix prefix;
  uint16_t first_port = 0;
  uint16_t last_port = UINT16_MAX;

  bool Contains(const NetworkAddress& address) const {
    return prefix.Contains(address.ip) && address.port >= first_port && address.port <= last_port;
  }
};

// Where a tenant may listen, whom it may reach, and who may reach it, besides itself on this node.
struct ConnectionRules {
  std::vector<AddressRange> listen;
  std::vector<AddressRange> connect;
  // The peers' ports do not count.
  std::vector<IpPrefix> accept;

  bool MayListen(const NetworkAddress& address) const {
    return std::ranges::any_of(listen, [&address](const AddressRange& range) { return range.Contains(address); });
  }
  bool MayReach(const NetworkAddress& peer) const {
    return std::ranges::any_of(connect, [&peer](const AddressRange& range) { return range.Contains(peer); });
  }
  // For ConnectQp, whose address has no port.
  bool MayReach(const IpAddress& peer) const {
    return std::ranges::any_of(connect, [&peer](const AddressRange& range) { return range.prefix.Contains(peer); });
  }
  bool Accepts(const IpAddress& peer) const {
    return std::ranges::any_of(accept, [&peer](const IpPrefix& prefix) { return prefix.Contains(peer); });
  }
};

}  // namespace rnicd::core
