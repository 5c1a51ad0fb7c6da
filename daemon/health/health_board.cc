#include "daemon/health/health_board.h"

#include <utility>
#include <vector>

namespace rnicd::health {

bool HealthBoard::ready() const {
  {
    MutexLock lock(mutex_);
    if (!any_card_) {
      return false;
    }
  }
  return serving_ == nullptr || serving_->Read().serves();
}

bool HealthBoard::live() const { return serving_ == nullptr || serving_->Read().live(); }

void HealthBoard::SetCards(bool any_healthy) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(any_card_, any_healthy) == any_healthy) {
      return;
    }
  }
  NotifyAll();
}

// Listeners are called without the lock, because they read the board.
void HealthBoard::NotifyAll() {
  std::vector<Listener> listeners;
  {
    MutexLock lock(mutex_);
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
