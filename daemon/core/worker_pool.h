#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace rnicd::core {

// Where core leaves work for later. Threads: safe. Jobs may run in any order, side by side, and never inside Post.
class Executor {
 public:
  virtual ~Executor() = default;
  // The owners take turns: one with many jobs does not hold up another's first. The number only tells them apart.
  virtual void PostFor(uint64_t owner, std::function<void()> job) = 0;
  void Post(std::function<void()> job) { PostFor(0, std::move(job)); }
};

// Threads for what may take long: populating memory, large registrations, taking sessions back.
// Lifetime: the destructor runs what is queued, then joins.
// Threads:  safe. The queue has no bound of its own: every job is charged to somebody before it is posted.
class WorkerPool final : public Executor {
 public:
  explicit WorkerPool(uint32_t threads);
  ~WorkerPool() override;

  void PostFor(uint64_t owner, std::function<void()> job) override;

 private:
  void Run();
  std::function<void()> TakeNext() RNICD_REQUIRES(mutex_);

  Mutex mutex_;
  ConditionVariable changed_;
  // Of owners with jobs, each in the order posted.
  std::unordered_map<uint64_t, std::deque<std::function<void()>>> jobs_ RNICD_GUARDED_BY(mutex_);
  // Whose turn it is; each owner of jobs_ once.
  std::deque<uint64_t> turns_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace rnicd::core
