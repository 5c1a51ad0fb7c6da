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

void WorkerPool::PostFor(uint64_t owner, std::function<void()> job) {
  {
    MutexLock lock(mutex_);
    std::deque<std::function<void()>>& jobs = jobs_[owner];
    if (jobs.empty()) {
      turns_.push_back(owner);
    }
    jobs.push_back(std::move(job));
  }
  changed_.NotifyOne();
}

std::function<void()> WorkerPool::TakeNext() {
  const uint64_t owner = turns_.front();
  turns_.pop_front();
  const auto found = jobs_.find(owner);
  std::function<void()> job = std::move(found->second.front());
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
