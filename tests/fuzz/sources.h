#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"

// Deterministic randomness and time: the same for the same input. Threads: both are safe.
namespace rnicd::fuzz {

class SeededRandom final : public RandomSource {
 public:
  explicit SeededRandom(uint64_t seed) : numbers_(seed) {}
  uint64_t Next() override {
    MutexLock lock(mutex_);
    return numbers_();
  }

 private:
  Mutex mutex_;
  // The C++ standard fixes this sequence, so that it is the same on every machine.
  std::mt19937_64 numbers_ RNICD_GUARDED_BY(mutex_);
};

class ManualClock final : public Clock {
 public:
  Instant Now() const override { return Instant(std::chrono::milliseconds(now_ms_.load())); }
  void Advance(std::chrono::milliseconds by) { now_ms_.fetch_add(by.count()); }

 private:
  std::atomic<int64_t> now_ms_{1000000};
};

}  // namespace rnicd::fuzz
