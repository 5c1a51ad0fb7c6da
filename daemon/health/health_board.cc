#include "daemon/health/health_board.h"

#include <utility>
#include <vector>

namespace rnicd::health {

bool HealthBoard::ready() const {
  MutexLock lock(mutex_);
  return ready_;
}

// Listeners are called without the lock, because they call ready().
void HealthBoard::Set(bool ready) {
  std::vector<Listener> listeners;
  {
    MutexLock lock(mutex_);
    if (ready_ == ready) {
      return;
    }
    ready_ = ready;
    for (const auto& [subscription, listener] : listeners_) {
      listeners.push_back(listener);
    }
  }
  for (const Listener& listener : listeners) {
    listener();
  }
}

uint64_t HealthBoard::Subscribe(Listener listener) {
  MutexLock lock(mutex_);
  listeners_.emplace(++last_subscription_, std::move(listener));
  return last_subscription_;
}

void HealthBoard::Unsubscribe(uint64_t subscription) {
  MutexLock lock(mutex_);
  listeners_.erase(subscription);
}

}  // namespace rnicd::health
