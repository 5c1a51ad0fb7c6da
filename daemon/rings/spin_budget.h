#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "base/clock.h"
#include "daemon/rings/spin_options.h"
#include "ring/processor.h"

namespace rnicd::rings {

// How long a thread may look for entries that have not come yet: a share of its time, of which each tenant with a ring
// there has an equal part. Without it a client with an entry now and then would keep a core busy for nothing.
// Threads: one at a time.
class SpinBudget {
 public:
  SpinBudget(const SpinOptions& options, Instant now) : options_(options), window_began_(now) {}

  void AddRing(uint64_t tenant) { ++tenants_[tenant].rings; }
  void RemoveRing(uint64_t tenant);
  // Whether the thread may look at a ring of this tenant that is empty since then. `client_cpu`: where its client runs,
  // 0 where that is not known.
  bool Allows(uint64_t tenant, uint32_t client_cpu, Instant last_entry, Instant now);
  // Time spent looking at a ring of this tenant.
  void Spend(uint64_t tenant, std::chrono::nanoseconds time) { tenants_[tenant].spent += time; }

 private:
  struct Tenant {
    uint64_t rings = 0;
    std::chrono::nanoseconds spent{0};
  };

  // Whether this tenant has time left.
  bool HasTime(uint64_t tenant, Instant now);

  const SpinOptions options_;
  // For clients that do not say where they run.
  const bool several_processors_ = ring::SeveralProcessors();
  Instant window_began_;
  // Those that have rings.
  std::map<uint64_t, Tenant> tenants_;
};

}  // namespace rnicd::rings
