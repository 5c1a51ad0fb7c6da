#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/ndk/network_address.h"

namespace rnicd::provider {

// A card as the kernel lists it.
struct CardId {
  std::string name;
  // Name of its device file, "uverbs0"; the next card may get the same.
  std::string file;
  // Differs when the same name and file return; 0: unknown, and any will do.
  uint64_t instance = 0;
  friend bool operator==(const CardId&, const CardId&) = default;
};

// What the kernel says of its cards without opening them, so that tests can substitute cards that come and go.
// Threads: safe.
class CardList {
 public:
  virtual ~CardList() = default;
  // In kernel order; empty when there are no devices or /dev/infiniband is not accessible. A card that is missing may
  // be there all the same: a list takes descriptors, of which there may be too few.
  virtual std::vector<CardId> List() = 0;
  // False once the kernel removes the card, also while that waits for those who have it open, and when it is renamed.
  virtual bool Has(const CardId& card) = 0;
  // A descriptor that is readable when cards may have come or gone, at the latest from its return on. One that never is
  // where the kernel does not say so.
  virtual UniqueFd Watch() = 0;
  // Takes all that it says. True if cards may have come or gone.
  virtual bool ReadNews(int watch) = 0;
  // -1 when unknown.
  virtual int NumaNode(const std::string& name) = 0;
  // Addresses of the network device with this MAC address, which is what an iWARP card's GID table has.
  virtual std::vector<IpAddress> AddressesOf(const ibv_gid& mac) = 0;
};

}  // namespace rnicd::provider
