#pragma once

#include <chrono>

#include "base/clock.h"

namespace rnicd::kubernetes {

// Stands still unless a test moves it.
class HeldClock final : public Clock {
 public:
  Instant Now() const override { return now_; }
  void Pass(std::chrono::milliseconds time) { now_ += time; }

 private:
  Instant now_ = Instant(std::chrono::hours(1));
};

}  // namespace rnicd::kubernetes
