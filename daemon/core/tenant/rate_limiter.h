#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace rnicd::core {

// A limit on how often an action may happen.
struct Rate {
  // Actions per second; 0 means no limit; at most 1,000,000,000.
  uint64_t per_second = 0;
  // Actions that may happen at once after a pause; 0 means as many as one second allows.
  uint64_t burst = 0;
};

// Admits actions at a rate: bursts up to the rate's, in the long run at most per_second.
// Threads: safe, without locks.
class RateLimiter {
 public:
  // `clock` outlives the limiter.
  RateLimiter(const Clock& clock, const Rate& rate) : clock_(clock), made_(clock.Now()) { Set(rate); }

  // Actions admitted earlier still count, at most as one burst.
  void Set(const Rate& rate);
  // Admits one action and returns nothing; or returns the time until one would be admitted, and counts nothing.
  std::optional<std::chrono::nanoseconds> Take();
  // Takes back one admitted action.
  void Undo();
  // Counts actions that cannot be refused any more. They delay those that follow, by no more than a second, or the time
  // of one burst if that is longer.
  void Count(uint64_t actions);
  uint64_t per_second() const { return per_second_.load(); }
  // True when all admitted actions have been worked off: a new limiter would admit as much.
  bool idle() const;

 private:
  const Clock& clock_;
  std::atomic<uint64_t> per_second_{0};
  // Time since the limiter was made, in sixteenths of a nanosecond: fine enough for the highest rate, without a
  // practical limit.
  int64_t Now() const;

  const Instant made_;
  // Cost of one action, and the cost that may be taken in advance.
  std::atomic<int64_t> cost_{0};
  std::atomic<int64_t> ahead_{0};
  // Time at which all admitted actions will have been worked off.
  std::atomic<int64_t> busy_until_{0};
};

}  // namespace rnicd::core
