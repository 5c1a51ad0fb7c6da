#pragma once

#include <chrono>

#include "base/mutex.h"

namespace rnicd {

using Instant = std::chrono::steady_clock::time_point;

// The only source of time, so that tests and simulation can control it.
// Threads: safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
  // Waits for a notification; false on timeout, when the clock reaches `deadline`. Spurious wake-ups are possible.
  virtual bool WaitUntil(ConditionVariable& changed, Mutex& mutex, Instant deadline) const RNICD_REQUIRES(mutex) {
    return changed.WaitUntil(mutex, deadline);
  }
};

class SteadyClock final : public Clock {
 public:
  Instant Now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace rnicd
