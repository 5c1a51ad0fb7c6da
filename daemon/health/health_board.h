#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "base/mutex.h"
#include "daemon/health/serving_check.h"

namespace rnicd::health {

// Joins the health of the cards with that of the daemon itself, and notifies its subscribers of changes: the health
// streams of operators.
// Lifetime: outlives its subscribers.
// Threads: safe.
class HealthBoard {
 public:
  // Called after a change; the listener reads the board. May still be called once after Unsubscribe.
  using Listener = std::function<void()>;

  // Without a check the daemon always serves.
  HealthBoard() = default;
  explicit HealthBoard(const ServingCheck& serving) : serving_(&serving) {}

  // Whether a workload would be served now: by the daemon, and by at least one card. False until the first SetCards.
  bool ready() const;
  // False while the daemon hangs.
  bool live() const;

  void SetCards(bool any_healthy);
  // To be called when the serving check has changed.
  void NotifyAll();

  // Returns the argument of Unsubscribe.
  uint64_t Subscribe(Listener listener);
  void Unsubscribe(uint64_t subscription);

 private:
  const ServingCheck* const serving_ = nullptr;
  mutable Mutex mutex_;
  bool any_card_ RNICD_GUARDED_BY(mutex_) = false;
  uint64_t last_subscription_ RNICD_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Listener> listeners_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::health
