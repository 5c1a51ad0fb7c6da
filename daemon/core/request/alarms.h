#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace rnicd::core {

// Runs jobs at their times, for requests that wait for a limited time.
// Lifetime: the destructor joins; jobs that are not due yet are dropped.
// Threads:  safe. Jobs run one at a time, on the thread or in RunDue, without a lock held; they must be quick. The list
//           itself has no bound: each alarm belongs to a request that is charged.
class Alarms {
 public:
  // Identifies an alarm: its time, and a number of its own.
  using Key = std::pair<Instant, uint64_t>;

  // `clock` outlives the alarms.
  explicit Alarms(const Clock& clock) : clock_(clock) {}
  ~Alarms();
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

  // Starts the thread. Without it only RunDue runs jobs.
  void Start();
  // Sets an alarm after `delay`.
  Key Set(std::chrono::nanoseconds delay, std::function<void()> job);
  // Removes the alarm; a job that is due may still run.
  void Cancel(const Key& key);
  // Runs the jobs that are due now.
  void RunDue();
  uint64_t count() const;

 private:
  void Run();
  // Removes and returns the first job that is due; null if there is none.
  std::function<void()> TakeDue() RNICD_REQUIRES(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::map<Key, std::function<void()>> jobs_ RNICD_GUARDED_BY(mutex_);
  uint64_t last_number_ RNICD_GUARDED_BY(mutex_) = 0;
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rnicd::core
