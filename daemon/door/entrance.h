#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "daemon/core/tenant/rate_limiter.h"
#include "daemon/door/connect_rates.h"
#include "daemon/door/places.h"

namespace rnicd::door {

// What the front door admits of workloads.
struct ConnectionLimits {
  // 0 means no limit.
  uint64_t max = 0;
  // The same for one pod; for one container outside of pods; for one user outside of both.
  uint64_t max_per_owner = 0;
  // New connections for each of these. 0 per second means no limit.
  core::Rate rate;
  std::chrono::milliseconds silent_timeout{10000};
};

// Admits connections of owners (core::OwnerOf): each takes a place, and new ones are counted against a rate.
// Lifetime: `clock` outlives it.
// Threads:  one; the places are shared.
class Entrance {
 public:
  struct Outcome {
    // Kept as long as the connection; null where it is refused.
    std::shared_ptr<void> place;
    // One of core::kRefusals where it is refused.
    std::string_view refusal;
  };

  Entrance(const Clock& clock, std::shared_ptr<Places> places, core::Rate rate)
      : places_(std::move(places)), rates_(clock, rate) {}

  // True when nobody has a place left.
  bool IsFull() const { return places_->IsFull(); }
  Outcome Admit(const std::string& owner);

 private:
  const std::shared_ptr<Places> places_;
  ConnectRates rates_;
};

}  // namespace rnicd::door
