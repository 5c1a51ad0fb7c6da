#pragma once

#include <cstdint>

#include "base/mutex.h"

namespace rnicd::provider {

// Lets transfers in and, once closed, none any more: who closes waits for those inside. Threads: safe.
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

  // Returns when nobody is inside; true for the first who closes.
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
