#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "daemon/core/tenant/rate_limiter.h"

namespace rnicd::door {

// New connections of each owner (core::OwnerOf), counted against a rate.
// Lifetime: `clock` outlives it. Threads: one.
class ConnectRates {
 public:
  // 0 per second means no limit.
  ConnectRates(const Clock& clock, core::Rate rate) : clock_(clock), rate_(rate) {}

  // Counts a connection. True for one above the owner's rate.
  bool IsTooFast(const std::string& owner);
  size_t size() const { return rates_.size(); }

 private:
  const Clock& clock_;
  const core::Rate rate_;
  // Owners with connections in the last seconds.
  std::unordered_map<std::string, std::unique_ptr<core::RateLimiter>> rates_;
  size_t rates_to_prune_ = 0;
};

}  // namespace rnicd::door
