#include "daemon/core/request/alarms.h"

namespace rnicd::core {

Alarms::~Alarms() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Alarms::Start() {
  thread_ = std::thread([this] { Run(); });
}

Alarms::Key Alarms::Set(std::chrono::nanoseconds delay, std::function<void()> job) {
  Key key;
  {
    MutexLock lock(mutex_);
    key = {clock_.Now() + delay, ++last_number_};
    const auto added = jobs_.emplace(key, std::move(job)).first;
    if (added != jobs_.begin()) {
      return key;
    }
  }
  changed_.NotifyOne();
  return key;
}

void Alarms::Cancel(const Key& key) {
  std::function<void()> job;  // Destroyed without the lock: it may own the last reference to anything.
  MutexLock lock(mutex_);
  if (const auto found = jobs_.find(key); found != jobs_.end()) {
    job = std::move(found->second);
    jobs_.erase(found);
  }
}

std::function<void()> Alarms::TakeDue() {
  if (jobs_.empty() || jobs_.begin()->first.first > clock_.Now()) {
    return nullptr;
  }
  std::function<void()> job = std::move(jobs_.begin()->second);
  jobs_.erase(jobs_.begin());
  return job;
}

void Alarms::RunDue() {
  while (true) {
    std::function<void()> job;
    {
      MutexLock lock(mutex_);
      job = TakeDue();
    }
    if (job == nullptr) {
      return;
    }
    job();
  }
}

void Alarms::Run() {
  while (true) {
    RunDue();
    MutexLock lock(mutex_);
    if (stopping_) {
      return;
    }
    if (jobs_.empty()) {
      changed_.Wait(mutex_);
    } else if (const Instant due = jobs_.begin()->first.first; due > clock_.Now()) {
      clock_.WaitUntil(changed_, mutex_, due);
    }
  }
}

uint64_t Alarms::count() const {
  MutexLock lock(mutex_);
  return jobs_.size();
}

}  // namespace rnicd::core
