#include "daemon/gate/delayed_responses.h"

#include <utility>

namespace rnicd::gate {
namespace {

// Each entry keeps a call open. Calls above the limit are refused at once.
constexpr size_t kWaitingMax = 4096;

}  // namespace

DelayedResponses::DelayedResponses() : DelayedResponses(kWaitingMax) {}

DelayedResponses::DelayedResponses(size_t waiting_max) : waiting_max_(waiting_max), thread_([this] { Run(); }) {}

DelayedResponses::~DelayedResponses() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

bool DelayedResponses::Add(std::chrono::nanoseconds delay, std::function<void()> response) {
  const Instant due = std::chrono::steady_clock::now() + delay;
  {
    MutexLock lock(mutex_);
    if (waiting_.size() >= waiting_max_) {
      return false;
    }
    const auto added = waiting_.emplace(due, std::move(response));
    if (added != waiting_.begin()) {
      return true;
    }
  }
  changed_.NotifyOne();
  return true;
}

void DelayedResponses::Run() {
  while (true) {
    std::function<void()> response;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && (waiting_.empty() || waiting_.begin()->first > std::chrono::steady_clock::now())) {
        if (waiting_.empty()) {
          changed_.Wait(mutex_);
        } else {
          // A copy: the entry may be removed before this thread looks at it again.
          const Instant due = waiting_.begin()->first;
          changed_.WaitUntil(mutex_, due);
        }
      }
      if (waiting_.empty()) {
        return;
      }
      response = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
    }
    response();
  }
}

}  // namespace rnicd::gate
