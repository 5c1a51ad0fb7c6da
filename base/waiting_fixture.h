#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace rnicd {

// Only a failing test waits this long.
inline constexpr std::chrono::seconds kTimeout{20};

// True as soon as the condition holds; false when it does not hold within kTimeout.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A barrier at which threads wait until it is opened.
class Barrier {
 public:
  ~Barrier() { Open(); }
  void Pass() {
    MutexLock lock(mutex_);
    ++waiting_;
    changed_.NotifyAll();
    while (!open_) {
      changed_.Wait(mutex_);
    }
  }
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  // Returns when a thread waits at the barrier.
  void AwaitWaiter() {
    MutexLock lock(mutex_);
    while (waiting_ == 0) {
      changed_.Wait(mutex_);
    }
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool open_ RNICD_GUARDED_BY(mutex_) = false;
  int waiting_ RNICD_GUARDED_BY(mutex_) = 0;
};

}  // namespace rnicd
