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

// Whose job it is.
struct JobOwner {
  // Owners take turns. The number only identifies the owner.
  uint64_t number = 0;
  // Jobs of one owner that Withdraw takes back together, such as those of a session. 0 means none.
  uint64_t group = 0;
  friend bool operator==(const JobOwner&, const JobOwner&) = default;
};

// A job that waits for its turn.
struct QueuedJob {
  JobOwner owner;
  std::function<void()> run;
};

// Removes the jobs of this owner and group from a queue, and returns them in the order they were queued.
template <typename Queue>
std::vector<std::function<void()>> TakeJobs(Queue& queue, const JobOwner& owner) {
  std::vector<std::function<void()>> taken;
  Queue kept;
  for (QueuedJob& job : queue) {
    if (job.owner == owner) {
      taken.push_back(std::move(job.run));
    } else {
      kept.push_back(std::move(job));
    }
  }
  queue.swap(kept);
  return taken;
}

// Runs jobs later. Threads: safe. Jobs may run in any order, in parallel, and never inside Enqueue.
class Executor {
 public:
  virtual ~Executor() = default;
  // Schedules owners round robin: one with many jobs does not delay another's first.
  virtual void Enqueue(const JobOwner& owner, std::function<void()> job) = 0;
  // Removes the jobs of this owner and group that have not begun, and returns them in the order they were queued.
  virtual std::vector<std::function<void()>> Withdraw(const JobOwner& owner) = 0;
  void PostFor(uint64_t owner, std::function<void()> job) { Enqueue({.number = owner}, std::move(job)); }
  void Post(std::function<void()> job) { PostFor(0, std::move(job)); }
};

// Threads for work that may take long: populating memory, large registrations, reclaiming sessions.
// Lifetime: the destructor runs what is queued, then joins.
// Threads:  safe. The queue itself has no bound: every job is charged to an owner before it is posted.
class WorkerPool final : public Executor {
 public:
  explicit WorkerPool(uint32_t threads);
  ~WorkerPool() override;

  void Enqueue(const JobOwner& owner, std::function<void()> job) override;
  std::vector<std::function<void()>> Withdraw(const JobOwner& owner) override;

 private:
  void Run();
  std::function<void()> TakeNext() RNICD_REQUIRES(mutex_);

  Mutex mutex_;
  ConditionVariable changed_;
  // Queued jobs by owner, each in the order posted.
  std::unordered_map<uint64_t, std::deque<QueuedJob>> jobs_ RNICD_GUARDED_BY(mutex_);
  // Owners in round-robin order; each owner in jobs_ once.
  std::deque<uint64_t> turns_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace rnicd::core
