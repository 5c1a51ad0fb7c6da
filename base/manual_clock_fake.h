#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"

namespace rnicd {

// A clock that stands still until the test moves it. It is so far ahead of steady_clock that no system timeout set to
// one of its times expires during a test.
// Threads: safe.
class ManualClock final : public Clock {
 public:
  Instant Now() const override { return Instant(std::chrono::nanoseconds(now_ns_.load())); }
  // Polls, because Advance has no list of waiting threads.
  bool WaitUntil(ConditionVariable& changed, Mutex& mutex, Instant deadline) const override RNICD_REQUIRES(mutex) {
    if (Now() < deadline) {
      changed.WaitUntil(mutex, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
    }
    return Now() < deadline;
  }
  void Advance(std::chrono::nanoseconds by) { now_ns_.fetch_add(by.count()); }

 private:
  std::atomic<int64_t> now_ns_{std::chrono::nanoseconds(std::chrono::hours(100'000)).count()};
};

}  // namespace rnicd
