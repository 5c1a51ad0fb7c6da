#include "log/line_budget.h"

#include <utility>

namespace rnicd::log {

void LineBudget::Refill() {
  const Instant now = clock_.Now();
  while (left_ < options_.burst && now - refilled_ >= options_.interval) {
    ++left_;
    refilled_ += options_.interval;
  }
  if (left_ == options_.burst) {
    refilled_ = now;
  }
}

std::optional<uint64_t> LineBudget::Admit() {
  MutexLock lock(mutex_);
  Refill();
  if (left_ == 0) {
    ++dropped_;
    return std::nullopt;
  }
  --left_;
  return std::exchange(dropped_, 0);
}

}  // namespace rnicd::log
