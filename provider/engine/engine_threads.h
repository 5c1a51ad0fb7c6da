#pragma once

#include <cstdint>

#include "base/mutex.h"

namespace rnicd::provider {

// Running: which threads are inside an engine. One of them is its runner; the others hold it, so that Disconnect waits
// for them. A part of a QueuePairEngine, used under its lock, which is `mutex` below.
class EngineThreads {
 public:
  // True when the caller becomes the runner. Otherwise the one there is runs once more.
  bool BeginRun() {
    const bool first = runner_ == Runner::kNone;
    runner_ = first ? Runner::kRunning : Runner::kRunningAgain;
    return first;
  }
  // The runner has no more work. False when it has to run once more.
  bool EndRun() {
    const bool stops = runner_ == Runner::kRunning;
    runner_ = stops ? Runner::kNone : Runner::kRunning;
    runs_ += stops ? 1 : 0;
    changed_.NotifyAll();
    return stops;
  }
  void Hold() { ++holders_; }
  bool HoldIf(bool condition) {
    holders_ += condition ? 1 : 0;
    return condition;
  }
  void Release() {
    --holders_;
    changed_.NotifyAll();
  }
  bool idle() const { return runner_ == Runner::kNone && holders_ == 0; }

  // Returns when there is no runner, or the one there is has stopped. It sees what was changed before.
  void AwaitRunner(Mutex& mutex) RNICD_REQUIRES(mutex) {
    for (const uint64_t runs = runs_; runner_ != Runner::kNone && runs_ == runs;) {
      changed_.Wait(mutex);
    }
  }
  // For what else Disconnect waits for.
  void NotifyChange() { changed_.NotifyAll(); }
  // Waits for a change. Spurious wake-ups are possible.
  void AwaitChange(Mutex& mutex) RNICD_REQUIRES(mutex) { changed_.Wait(mutex); }

 private:
  enum class Runner : uint8_t { kNone, kRunning, kRunningAgain };

  Runner runner_ = Runner::kNone;
  // Number of runners that have stopped.
  uint64_t runs_ = 0;
  // Visitors, and callbacks and calls to card and peers in progress besides the runner's.
  uint64_t holders_ = 0;
  ConditionVariable changed_;
};

}  // namespace rnicd::provider
