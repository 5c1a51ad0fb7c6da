#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace rnicd::core {

// Where core leaves work for later. Threads: safe. Jobs may run in any order, side by side, and never inside Post.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void Post(std::function<void()> job) = 0;
};

// Threads for what may take long: populating memory, large registrations, taking sessions back.
// Lifetime: the destructor runs what is queued, then joins.
// Threads:  safe. The queue has no bound of its own: every job is charged to somebody before it is posted.
class WorkerPool final : public Executor {
 public:
  explicit WorkerPool(uint32_t threads);
  ~WorkerPool() override;

  void Post(std::function<void()> job) override;

 private:
  void Run();

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> jobs_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace rnicd::core
