#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"

namespace rnicd::provider {

// Admits transfers until it is closed; Close waits for the transfers inside. A transfer inside keeps it in memory until
// Leave has returned.
// Threads: safe; without a lock for transfers, of which each passes several gates.
class PinGate {
 public:
  // False when closed; otherwise the caller must Leave.
  bool Enter() {
    uint64_t state = state_.load();
    while (state < kClosed) {
      if (state_.compare_exchange_weak(state, state + 1)) {
        return true;
      }
    }
    return false;
  }

  void Leave() {
    if (state_.fetch_sub(1) == kClosed + 1) {
      MutexLock lock(mutex_);
      empty_.NotifyAll();
    }
  }

  // Returns when no transfer is inside; true for the first caller of Close.
  bool Close() {
    const bool first = state_.fetch_or(kClosed) < kClosed;
    MutexLock lock(mutex_);
    while (state_.load() != kClosed) {
      empty_.Wait(mutex_);
    }
    return first;
  }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 63;

  // Number of transfers inside, and kClosed.
  std::atomic<uint64_t> state_ = 0;
  // For those who wait in Close.
  Mutex mutex_;
  ConditionVariable empty_;
};

}  // namespace rnicd::provider
