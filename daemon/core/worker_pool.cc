#include "daemon/core/worker_pool.h"

#include <utility>

namespace rnicd::core {

WorkerPool::WorkerPool(uint32_t threads) {
  for (uint32_t index = 0; index < threads; ++index) {
    threads_.emplace_back([this] { Run(); });
  }
}

WorkerPool::~WorkerPool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void WorkerPool::Enqueue(const JobOwner& owner, std::function<void()> job) {
  {
    MutexLock lock(mutex_);
    std::deque<QueuedJob>& jobs = jobs_[owner.number];
    if (jobs.empty()) {
      turns_.push_back(owner.number);
    }
    jobs.push_back({.owner = owner, .run = std::move(job)});
  }
  changed_.NotifyOne();
}

std::vector<std::function<void()>> WorkerPool::Withdraw(const JobOwner& owner) {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(owner.number);
  if (found == jobs_.end()) {
    return {};
  }
  std::vector<std::function<void()>> withdrawn = TakeJobs(found->second, owner);
  if (found->second.empty()) {
    jobs_.erase(found);
    std::erase(turns_, owner.number);
  }
  return withdrawn;
}

std::function<void()> WorkerPool::TakeNext() {
  const uint64_t owner = turns_.front();
  turns_.pop_front();
  const auto found = jobs_.find(owner);
  std::function<void()> job = std::move(found->second.front().run);
  found->second.pop_front();
  if (found->second.empty()) {
    jobs_.erase(found);
  } else {
    turns_.push_back(owner);
  }
  return job;
}

void WorkerPool::Run() {
  while (true) {
    std::function<void()> job;
    {
      MutexLock lock(mutex_);
      while (turns_.empty() && !stopping_) {
        changed_.Wait(mutex_);
      }
      if (turns_.empty()) {
        return;
      }
      job = TakeNext();
    }
    job();
  }
}

}  // namespace rnicd::core
