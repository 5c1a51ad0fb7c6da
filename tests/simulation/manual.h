#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/core/caller.h"
#include "daemon/core/worker_pool.h"
#include "provider/soft/soft_engine.h"

namespace rnicd::simulation {

// Queued jobs that run only when chosen, so that the seed decides their order.
class ManualJobs {
 public:
  void Add(std::function<void()> job) { jobs_.push_back(std::move(job)); }
  // Runs the job and releases what it holds.
  void Run(size_t index) {
    const std::function<void()> job = std::move(jobs_[index]);
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(index));
    job();
  }
  size_t size() const { return jobs_.size(); }
  void Clear() { jobs_.clear(); }

 private:
  std::vector<std::function<void()>> jobs_;
};

class ManualExecutor final : public core::Executor {
 public:
  void PostFor(uint64_t /*owner*/, std::function<void()> job) override { jobs.Add(std::move(job)); }

  ManualJobs jobs;
};

// Ignores the card's delays: bytes land when the simulation runs the job.
class ManualEngine final : public provider::SoftEngine {
 public:
  void Post(std::function<void()> job) override { jobs.Add(std::move(job)); }
  void PostAfter(std::chrono::microseconds /*delay*/, std::function<void()> job) override { jobs.Add(std::move(job)); }
  void Stop() override { jobs.Clear(); }

  ManualJobs jobs;
};

class ManualClock final : public Clock {
 public:
  Instant Now() const override { return Instant(now_); }
  void Advance(std::chrono::nanoseconds by) { now_ += by; }

 private:
  std::chrono::nanoseconds now_ = std::chrono::seconds(1000);
};

// A client's process.
class ManualProcess final : public core::ProcessHandle {
 public:
  bool HasExited(std::chrono::milliseconds /*wait*/) const override { return exited; }

  bool exited = false;
};

}  // namespace rnicd::simulation
