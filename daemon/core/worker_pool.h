#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace rnicd::core {

// Threads for what may take long: populating memory, large registrations, taking sessions back.
// Lifetime: the destructor runs what is queued, then joins.
// Threads:  safe. The queue has no bound of its own: every job is charged to somebody before it is posted.
class WorkerPool {
 public:
  explicit WorkerPool(uint32_t threads);
  ~WorkerPool();

  void Post(std::function<void()> job);

 private:
  void Run();

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> jobs_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace rnicd::core
