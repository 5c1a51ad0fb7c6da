#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/rings/spin_options.h"
#include "ring/processor.h"

namespace rnicd::rings {

// Limits how long all ring threads poll empty rings: a share of one processor, of which each tenant with a ring has an
// equal part. Without the limit, a client with an occasional entry would keep a core busy.
// Threads: safe.
class SpinBudget {
 public:
  SpinBudget(const SpinOptions& options, Instant now) : options_(options), window_began_(now) {}

  void AddRing(uint64_t tenant);
  void RemoveRing(uint64_t tenant);
  // Whether the calling thread may poll a ring of this tenant that has been empty since `last_entry`. `client_cpu`:
  // where its client runs; 0 if unknown.
  bool Allows(uint64_t tenant, uint32_t client_cpu, Instant last_entry, Instant now);
  // Records time spent polling a ring of this tenant.
  void Spend(uint64_t tenant, std::chrono::nanoseconds time);

 private:
  struct Tenant {
    uint64_t rings = 0;
    std::chrono::nanoseconds spent{0};
  };

  // Whether this tenant has time left.
  bool HasTime(uint64_t tenant, Instant now) RNICD_REQUIRES(mutex_);

  const SpinOptions options_;
  // For clients that do not report their processor.
  const bool several_processors_ = ring::AllowedProcessors().count() > 1;
  Mutex mutex_;
  Instant window_began_ RNICD_GUARDED_BY(mutex_);
  // Those that have rings.
  std::map<uint64_t, Tenant> tenants_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::rings
