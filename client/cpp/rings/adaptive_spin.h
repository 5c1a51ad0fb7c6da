#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "ring/processor.h"

namespace rnicd::inline client {

// Timeout of every sleep: a daemon that crashes cannot wake waiting threads, so each of them then checks whether the
// session has ended.
inline constexpr std::chrono::milliseconds kSleepMax{100};

// Polls shared memory for a short time before its caller sleeps on it: waking a processor that has gone to sleep costs
// tens of microseconds. Polling is harmful where the daemon needs this processor, and where the wait is long; it
// detects both, and then polls for a shorter time or not at all.
// Threads: safe.
class AdaptiveSpin {
 public:
  // `bound` is the longest time that is spent on one wait; 0 never spins.
  explicit AdaptiveSpin(std::chrono::nanoseconds bound);

  // True as soon as `ready` returns true; false when it is time to sleep. `daemon_cpu`: the processor of the thread
  // that is waited for, plus 1; 0 if unknown.
  template <typename Ready>
  bool Until(uint32_t daemon_cpu, Instant begin, const Ready& ready) {
    if (ready()) {
      return true;
    }
    if (!IsWorthwhile(daemon_cpu)) {
      return false;
    }
    const Instant end = begin + std::chrono::nanoseconds(time_.load(std::memory_order_relaxed));
    do {
      for (int turn = 0; turn < kTurnsPerClockReading; ++turn) {
        ring::Relax();
        if (ready()) {
          return true;
        }
      }
    } while (Instant::clock::now() < end);
    return false;
  }
  // What a wait took in all, the sleep included.
  void Record(std::chrono::nanoseconds waited);

 private:
  static constexpr int kTurnsPerClockReading = 16;

  bool IsWorthwhile(uint32_t daemon_cpu) const;

  const std::chrono::nanoseconds bound_;
  // Nanoseconds that the next wait spins.
  std::atomic<int64_t> time_;
};

}  // namespace rnicd::inline client
