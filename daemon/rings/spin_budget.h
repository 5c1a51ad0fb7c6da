#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "base/clock.h"

namespace rnicd::rings {

// How long a thread may look for entries that have not come yet: a share of its time, of which each tenant with a ring
// there has an equal part. Without it a client with an entry now and then would keep a core busy for nothing.
// Threads: one at a time.
class SpinBudget {
 public:
  // `percent`: 0 to 100.
  SpinBudget(uint32_t percent, Instant now) : percent_(percent), window_began_(now) {}

  void AddRing(uint64_t tenant) { ++tenants_[tenant].rings; }
  void RemoveRing(uint64_t tenant);
  // Whether this tenant has time left.
  bool Allows(uint64_t tenant, Instant now);
  // Time spent looking at a ring of this tenant.
  void Spend(uint64_t tenant, std::chrono::nanoseconds time) { tenants_[tenant].spent += time; }

 private:
  struct Tenant {
    uint64_t rings = 0;
    std::chrono::nanoseconds spent{0};
  };

  const uint32_t percent_;
  Instant window_began_;
  // Those that have rings.
  std::map<uint64_t, Tenant> tenants_;
};

}  // namespace rnicd::rings
