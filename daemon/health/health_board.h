#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "base/mutex.h"

namespace rnicd::health {

// Holds the daemon's readiness and notifies its subscribers of every change: the health streams of operators.
// Lifetime: outlives its subscribers. Threads: safe.
class HealthBoard {
 public:
  // Called after a change; the listener calls ready() for the value. May still be called once after Unsubscribe.
  using Listener = std::function<void()>;

  // False until the first Set.
  bool ready() const;
  void Set(bool ready);

  // Returns the argument of Unsubscribe.
  uint64_t Subscribe(Listener listener);
  void Unsubscribe(uint64_t subscription);

 private:
  mutable Mutex mutex_;
  bool ready_ RNICD_GUARDED_BY(mutex_) = false;
  uint64_t last_subscription_ RNICD_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Listener> listeners_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::health
