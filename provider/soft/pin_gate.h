#pragma once

#include <cstdint>

#include "base/mutex.h"

namespace rnicd::provider {

// Admits transfers until it is closed; Close waits for the transfers inside.
// Threads: safe.
class PinGate {
 public:
  // False when closed; otherwise the caller must Leave.
  bool Enter() {
    MutexLock lock(mutex_);
    if (closed_) {
      return false;
    }
    ++inside_;
    return true;
  }

  void Leave() {
    MutexLock lock(mutex_);
    if (--inside_ == 0 && closed_) {
      empty_.NotifyAll();
    }
  }

  // Returns when no transfer is inside; true for the first caller of Close.
  bool Close() {
    MutexLock lock(mutex_);
    const bool first = !closed_;
    closed_ = true;
    while (inside_ > 0) {
      empty_.Wait(mutex_);
    }
    return first;
  }

 private:
  Mutex mutex_;
  ConditionVariable empty_;
  uint64_t inside_ RNICD_GUARDED_BY(mutex_) = 0;
  bool closed_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
