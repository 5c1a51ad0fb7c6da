#include "provider/soft/net/soft_worker.h"

#include <utility>

namespace rnicd::provider {

void ThreadWorker::PostAfter(std::chrono::microseconds delay, std::function<void()> job) {
  MutexLock lock(mutex_);
  if (stopping_) {
    return;
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { Run(); });
  }
  jobs_.emplace(std::chrono::steady_clock::now() + delay, std::move(job));
  changed_.NotifyOne();
}

void ThreadWorker::Stop() {
  std::thread thread;
  std::multimap<Instant, std::function<void()>> dropped;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    dropped.swap(jobs_);
    thread = std::move(thread_);
    changed_.NotifyOne();
  }
  if (thread.joinable()) {
    thread.join();
  }
}

void ThreadWorker::Run() {
  while (true) {
    std::function<void()> job;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && (jobs_.empty() || jobs_.begin()->first > std::chrono::steady_clock::now())) {
        if (jobs_.empty()) {
          changed_.Wait(mutex_);
        } else {
          changed_.WaitUntil(mutex_, jobs_.begin()->first);
        }
      }
      if (stopping_) {
        return;
      }
      job = std::move(jobs_.begin()->second);
      jobs_.erase(jobs_.begin());
    }
    job();
  }
}

}  // namespace rnicd::provider
