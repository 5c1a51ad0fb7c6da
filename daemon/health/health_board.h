#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "base/mutex.h"

namespace rnicd::health {

// Whether the daemon is ready, for all who want to know and hear of every change: the health streams of operators.
// Lifetime: outlives who subscribes. Threads: safe.
class HealthBoard {
 public:
  // Says only that something has changed; who hears it asks `ready`. It may still be called once after Unsubscribe.
  using Listener = std::function<void()>;

  // False until somebody knows better.
  bool ready() const;
  void Set(bool ready);

  // Answers what Unsubscribe takes.
  uint64_t Subscribe(Listener listener);
  void Unsubscribe(uint64_t subscription);

 private:
  mutable Mutex mutex_;
  bool ready_ RNICD_GUARDED_BY(mutex_) = false;
  uint64_t last_subscription_ RNICD_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Listener> listeners_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::health
