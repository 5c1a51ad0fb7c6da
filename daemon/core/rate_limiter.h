#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace rnicd::core {

// How often something may happen.
struct Rate {
  // 0 means no limit; at most 1,000,000,000.
  uint64_t per_second = 0;
  // How many may come at once after a pause; 0 means as many as one second allows.
  uint64_t burst = 0;
};

// Lets through what keeps to a rate: bursts up to the rate's, in the long run no more than per_second.
// Threads: safe, without locks.
class RateLimiter {
 public:
  // `clock` outlives the limiter.
  RateLimiter(const Clock& clock, const Rate& rate) : clock_(clock), made_(clock.Now()) { Set(rate); }

  // What was let through before still counts, at most as one burst.
  void Set(const Rate& rate);
  // Nothing when it is let through; otherwise how long until it would be, and then it does not count.
  std::optional<std::chrono::nanoseconds> Take();
  // Takes back one that was let through.
  void Undo();
  uint64_t per_second() const { return per_second_.load(); }
  // What was let through is over at a steady pace: a new limiter would be as generous.
  bool idle() const;

 private:
  const Clock& clock_;
  std::atomic<uint64_t> per_second_{0};
  // Since the limiter was made, in sixteenths of a nanosecond: fine enough for the highest rate, and no end in sight.
  int64_t Now() const;

  const Instant made_;
  // What one takes, and what may be taken ahead.
  std::atomic<int64_t> cost_{0};
  std::atomic<int64_t> ahead_{0};
  // When all that was let through would be over at a steady pace.
  std::atomic<int64_t> busy_until_{0};
};

}  // namespace rnicd::core
