#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace rnicd::gate {

// Responses that are sent after a delay: a client in a loop waits for its refusals instead of keeping the daemon busy.
// Lifetime: the destructor sends the remaining ones at once, then joins. Everything the responses use outlives this.
// Threads:  safe. Responses run on one thread, so they must be quick; none runs inside Add.
class DelayedResponses {
 public:
  DelayedResponses();
  // At most `waiting_max` responses wait at a time.
  explicit DelayedResponses(size_t waiting_max);
  ~DelayedResponses();
  DelayedResponses(const DelayedResponses&) = delete;
  DelayedResponses& operator=(const DelayedResponses&) = delete;

  // False when there is no room; the caller must then respond itself.
  bool Add(std::chrono::nanoseconds delay, std::function<void()> response);

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
