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

// Runs jobs later. Threads: safe. Jobs may run in any order, in parallel, and never inside Post.
class Executor {
 public:
  virtual ~Executor() = default;
  // Schedules owners round robin: one with many jobs does not delay another's first. The number only identifies the
  // owner.
  virtual void PostFor(uint64_t owner, std::function<void()> job) = 0;
  void Post(std::function<void()> job) { PostFor(0, std::move(job)); }
};

// Threads for work that may take long: populating memory, large registrations, reclaiming sessions.
// Lifetime: the destructor runs what is queued, then joins.
// Threads:  safe. The queue itself has no bound: every job is charged to an owner before it is posted.
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
  // Queued jobs by owner, each in the order posted.
  std::unordered_map<uint64_t, std::deque<std::function<void()>>> jobs_ RNICD_GUARDED_BY(mutex_);
  // Owners in round-robin order; each owner in jobs_ once.
  std::deque<uint64_t> turns_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace rnicd::core
