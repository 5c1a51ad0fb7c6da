#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "daemon/core/request/worker_pool.h"
#include "daemon/core/tenant/caller.h"
#include "provider/soft/net/soft_worker.h"

namespace rnicd::simulation {

// Queued jobs that run only when chosen, so that the seed decides their order.
class ManualJobs {
 public:
  void Add(std::function<void()> job, const core::JobOwner& owner = {}) {
    jobs_.push_back({.owner = owner, .run = std::move(job)});
  }
  // Runs the job and releases what it holds.
  void Run(size_t index) {
    const std::function<void()> job = std::move(jobs_[index].run);
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(index));
    job();
  }
  std::vector<std::function<void()>> Withdraw(const core::JobOwner& owner) { return core::TakeJobs(jobs_, owner); }
  size_t size() const { return jobs_.size(); }
  void Clear() { jobs_.clear(); }

 private:
  std::vector<core::QueuedJob> jobs_;
};

class ManualExecutor final : public core::Executor {
 public:
  void Enqueue(const core::JobOwner& owner, std::function<void()> job) override { jobs.Add(std::move(job), owner); }
  std::vector<std::function<void()>> Withdraw(const core::JobOwner& owner) override { return jobs.Withdraw(owner); }

  ManualJobs jobs;
};

// Ignores the card's delays: bytes land when the simulation runs the job.
class ManualWorker final : public provider::SoftWorker {
 public:
  void Post(std::function<void()> job) override { jobs.Add(std::move(job)); }
  void PostAfter(std::chrono::microseconds /*delay*/, std::function<void()> job) override { jobs.Add(std::move(job)); }
  void Stop() override { jobs.Clear(); }

  ManualJobs jobs;
};

// A client's process.
class ManualProcess final : public core::ProcessHandle {
 public:
  bool HasExited(std::chrono::milliseconds /*wait*/) const override { return exited; }

  bool exited = false;
};

}  // namespace rnicd::simulation
