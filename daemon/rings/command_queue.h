#pragma once

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace rnicd::rings {

// Commands for a thread that executes them between two turns.
// Threads: Add from any; RunAll by that thread.
class CommandQueue {
 public:
  using Command = std::function<void()>;

  void Add(Command command) {
    MutexLock lock(mutex_);
    commands_.push_back(std::move(command));
    waiting_.store(true);
  }
  void RunAll();

 private:
  Mutex mutex_;
  std::vector<Command> commands_ RNICD_GUARDED_BY(mutex_);
  // True while a command waits, so that a busy thread can check without the lock.
  std::atomic<bool> waiting_{false};
};

}  // namespace rnicd::rings
