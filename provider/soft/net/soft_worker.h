#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace rnicd::provider {

// Background work of a card: continues long transfers and completes delayed reads.
// Threads: safe.
class SoftWorker {
 public:
  virtual ~SoftWorker() = default;
  virtual void Post(std::function<void()> job) = 0;
  virtual void PostAfter(std::chrono::microseconds delay, std::function<void()> job) = 0;
  // Returns when no job is running; later jobs are dropped.
  virtual void Stop() = 0;
};

// One thread, started by the first job.
class ThreadWorker final : public SoftWorker {
 public:
  ~ThreadWorker() override { Stop(); }

  void Post(std::function<void()> job) override { PostAfter(std::chrono::microseconds(0), std::move(job)); }
  void PostAfter(std::chrono::microseconds delay, std::function<void()> job) override;
  void Stop() override;

 private:
  void Run();

  Mutex mutex_;
  ConditionVariable changed_;
  std::multimap<Instant, std::function<void()>> jobs_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
