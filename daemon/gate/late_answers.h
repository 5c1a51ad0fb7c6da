#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace rnicd::gate {

// Answers that are given after a while: a client in a loop waits for its refusals instead of keeping us busy with them.
// Lifetime: the destructor gives what is left at once, then joins. What the answers need outlives this.
// Threads:  safe. Answers run on one thread, so they must be quick; none runs inside Add.
class LateAnswers {
 public:
  LateAnswers();
  // No more than `waiting_max` wait at a time.
  explicit LateAnswers(size_t waiting_max);
  ~LateAnswers();
  LateAnswers(const LateAnswers&) = delete;
  LateAnswers& operator=(const LateAnswers&) = delete;

  // False when there is no room; the answer is the caller's then.
  bool Add(std::chrono::nanoseconds delay, std::function<void()> answer);

 private:
  void Run();

  const size_t waiting_max_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::multimap<Instant, std::function<void()>> waiting_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rnicd::gate
