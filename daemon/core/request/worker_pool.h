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

// Runs jobs later.
// Threads: safe. Jobs may run in any order, in parallel, and never inside Enqueue.
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

// Scheduling priority of a pool's threads.
enum class ThreadPriority : uint8_t {
  kNormal,
  // All other threads get the processor first. For long work, so that it delays no short call.
  kBackground,
};

// Threads for work that may take long: populating memory, large registrations, reclaiming sessions. One owner's jobs
// never run on all of them, unless there is only one.
// Lifetime: the destructor runs what is queued, then joins.
// Threads:  safe. The queue itself has no bound: every job is charged to an owner before it is posted.
class WorkerPool final : public Executor {
 public:
  explicit WorkerPool(uint32_t threads, ThreadPriority priority = ThreadPriority::kNormal);
  ~WorkerPool() override;

  void Enqueue(const JobOwner& owner, std::function<void()> job) override;
  std::vector<std::function<void()>> Withdraw(const JobOwner& owner) override;

 private:
  // An owner's jobs, in the order posted, and how many of its jobs are running.
  struct Line {
    std::deque<QueuedJob> jobs;
    uint32_t running = 0;
    bool has_turn = false;
  };

  void Run();
  std::function<void()> TakeNext(uint64_t* owner) RNICD_REQUIRES(mutex_);
  void RecordEnd(uint64_t owner);
  // Gives the owner a turn if it has none and may run one more job, or forgets it if it has nothing.
  void Settle(uint64_t owner, Line& line) RNICD_REQUIRES(mutex_);

  const uint32_t most_of_owner_;
  Mutex mutex_;
  ConditionVariable changed_;
  // Owners with jobs that wait or run.
  std::unordered_map<uint64_t, Line> lines_ RNICD_GUARDED_BY(mutex_);
  // Owners in round-robin order: those that may run a job, each once.
  std::deque<uint64_t> turns_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace rnicd::core
