#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"
#include "daemon/rings/spin_options.h"
#include "ring/processor.h"

namespace rnicd::rings {

// Limits how long a thread polls empty rings: a share of its time, of which each tenant with a ring there has an equal
// part. Without the limit, a client with an occasional entry would keep a core busy.
// Threads: one at a time.
class SpinBudget {
 public:
  SpinBudget(const SpinOptions& options, Instant now) : options_(options), window_began_(now) {}

  void AddRing(uint64_t tenant) { ++tenants_[tenant].rings; }
  void RemoveRing(uint64_t tenant);
  // Whether the thread may poll a ring of this tenant that has been empty since `last_entry`. `client_cpu`: where its
  // client runs; 0 if unknown.
  bool Allows(uint64_t tenant, uint32_t client_cpu, Instant last_entry, Instant now);
  // A client that runs on the thread's processor has submitted: for some time it is likely to need that again, be it to
  // read what another client sends it.
  void ClientIsHere(Instant now) { client_here_ = now; }
  // Records time spent polling a ring of this tenant.
  void Spend(uint64_t tenant, std::chrono::nanoseconds time) { tenants_[tenant].spent += time; }

 private:
  struct Tenant {
    uint64_t rings = 0;
    std::chrono::nanoseconds spent{0};
  };

  // Whether this tenant has time left.
  bool HasTime(uint64_t tenant, Instant now);

  const SpinOptions options_;
  // For clients that do not report their processor.
  const bool several_processors_ = ring::SeveralProcessors();
  Instant window_began_;
  std::optional<Instant> client_here_;
  // Those that have rings.
  std::map<uint64_t, Tenant> tenants_;
};

}  // namespace rnicd::rings
