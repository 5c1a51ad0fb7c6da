#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ratio>

#include "base/clock.h"
#include "daemon/core/tenant/rate_limiter.h"

namespace rnicd::simulation {

// A leaky bucket that models a rate limit: each call adds what drains between two calls at a steady pace; a call that
// would overflow the bucket has to wait. A burst fills it.
class Bucket {
 public:
  explicit Bucket(const core::Rate& rate) { Set(rate, Instant()); }

  // Keeps the level, capped at the new size.
  void Set(const core::Rate& rate, Instant now) {
    const Ticks level = LevelAt(now);
    rate_ = rate;
    // Rounded up, so that the rate is never exceeded.
    const auto calls = static_cast<int64_t>(rate.per_second);
    call_ = Ticks(calls == 0 ? 0 : (Ticks::period::den + calls - 1) / calls);
    level_ = std::min(level, Size());
    filled_ = now;
  }

  // How long a call has to wait; 0 if it is admitted at once.
  std::chrono::nanoseconds WaitAt(Instant now) const {
    return std::chrono::ceil<std::chrono::nanoseconds>(std::max(LevelAt(now) + call_ - Size(), Ticks(0)));
  }
  void Pour(Instant now) {
    level_ = LevelAt(now) + call_;
    filled_ = now;
  }
  bool EmptyAt(Instant now) const { return LevelAt(now).count() == 0; }
  bool limited() const { return rate_.per_second != 0; }
  uint64_t per_second() const { return rate_.per_second; }

 private:
  // The resolution of core's limiter.
  using Ticks = std::chrono::duration<int64_t, std::ratio<1, 16'000'000'000>>;

  Ticks Size() const { return call_ * static_cast<int64_t>(rate_.burst == 0 ? rate_.per_second : rate_.burst); }
  Ticks LevelAt(Instant now) const {
    return std::max(level_ - std::chrono::duration_cast<Ticks>(now - filled_), Ticks(0));
  }

  core::Rate rate_;
  Ticks call_{0};
  // Level at `filled_`.
  Ticks level_{0};
  Instant filled_;
};

}  // namespace rnicd::simulation
