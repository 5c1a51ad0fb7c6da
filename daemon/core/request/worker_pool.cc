#include "daemon/core/request/worker_pool.h"

#include <algorithm>
#include <utility>

#include "base/system/this_thread.h"

namespace rnicd::core {

WorkerPool::WorkerPool(uint32_t threads, ThreadPriority priority) : most_of_owner_(std::max(threads, 2U) - 1) {
  for (uint32_t index = 0; index < threads; ++index) {
    threads_.emplace_back([this, priority] {
      if (priority == ThreadPriority::kBackground) {
        LowerPriority();
      }
      Run();
    });
  }
}

WorkerPool::~WorkerPool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    // The remaining jobs may run on all threads.
    for (auto& [owner, line] : lines_) {
      Settle(owner, line);
    }
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void WorkerPool::Enqueue(const JobOwner& owner, std::function<void()> job) {
  {
    MutexLock lock(mutex_);
    Line& line = lines_[owner.number];
    line.jobs.push_back({.owner = owner, .run = std::move(job)});
    Settle(owner.number, line);
  }
  changed_.NotifyOne();
}

std::vector<std::function<void()>> WorkerPool::Withdraw(const JobOwner& owner) {
  MutexLock lock(mutex_);
  const auto found = lines_.find(owner.number);
  if (found == lines_.end()) {
    return {};
  }
  std::vector<std::function<void()>> withdrawn = TakeJobs(found->second.jobs, owner);
  Settle(owner.number, found->second);
  return withdrawn;
}

void WorkerPool::Settle(uint64_t owner, Line& line) {
  const bool may_run = !line.jobs.empty() && (line.running < most_of_owner_ || stopping_);
  if (may_run && !line.has_turn) {
    turns_.push_back(owner);
  } else if (!may_run && line.has_turn) {
    std::erase(turns_, owner);
  }
  line.has_turn = may_run;
  if (line.jobs.empty() && line.running == 0) {
    lines_.erase(owner);
  }
}

std::function<void()> WorkerPool::TakeNext(uint64_t* owner) {
  *owner = turns_.front();
  turns_.pop_front();
  Line& line = lines_[*owner];
  line.has_turn = false;
  std::function<void()> job = std::move(line.jobs.front().run);
  line.jobs.pop_front();
  ++line.running;
  Settle(*owner, line);
  return job;
}

// The thread that ended a job takes the next turn itself, so no other thread has to be woken.
void WorkerPool::NoteEnd(uint64_t owner) {
  MutexLock lock(mutex_);
  Line& line = lines_[owner];
  --line.running;
  Settle(owner, line);
}

void WorkerPool::Run() {
  while (true) {
    uint64_t owner = 0;
    std::function<void()> job;
    {
      MutexLock lock(mutex_);
      while (turns_.empty() && !stopping_) {
        changed_.Wait(mutex_);
      }
      if (turns_.empty()) {
        return;
      }
      job = TakeNext(&owner);
    }
    job();
    // What it holds is released before its owner's next job begins.
    job = nullptr;
    NoteEnd(owner);
  }
}

}  // namespace rnicd::core
