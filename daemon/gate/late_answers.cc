#include "daemon/gate/late_answers.h"

#include <utility>

namespace rnicd::gate {
namespace {

// Each keeps a call of gRPC open, some 10 KiB. Those on top are answered at once.
constexpr size_t kWaitingMax = 4096;

}  // namespace

LateAnswers::LateAnswers() : LateAnswers(kWaitingMax) {}

LateAnswers::LateAnswers(size_t waiting_max) : waiting_max_(waiting_max), thread_([this] { Run(); }) {}

LateAnswers::~LateAnswers() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

bool LateAnswers::Add(std::chrono::nanoseconds delay, std::function<void()> answer) {
  const Instant due = std::chrono::steady_clock::now() + delay;
  {
    MutexLock lock(mutex_);
    if (waiting_.size() >= waiting_max_) {
      return false;
    }
    const auto added = waiting_.emplace(due, std::move(answer));
    if (added != waiting_.begin()) {
      return true;
    }
  }
  changed_.NotifyOne();
  return true;
}

void LateAnswers::Run() {
  while (true) {
    std::function<void()> answer;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && (waiting_.empty() || waiting_.begin()->first > std::chrono::steady_clock::now())) {
        if (waiting_.empty()) {
          changed_.Wait(mutex_);
        } else {
          // By value: the entry may be gone when this looks at it again.
          const Instant due = waiting_.begin()->first;
          changed_.WaitUntil(mutex_, due);
        }
      }
      if (waiting_.empty()) {
        return;
      }
      answer = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
    }
    answer();
  }
}

}  // namespace rnicd::gate
