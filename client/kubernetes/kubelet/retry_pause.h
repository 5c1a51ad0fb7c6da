#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace rnicd::kubernetes {

// When a registration may be tried: after a failure there is a pause, which doubles up to a longest one.
// Threads: one.
class RetryPause {
 public:
  RetryPause(std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : first_(first), longest_(longest), pause_(first) {}

  // End of the pause.
  Instant end() const { return end_; }
  // Forgets earlier failures; there is no pause.
  void Reset(Instant now) {
    pause_ = first_;
    end_ = now;
  }
  // Begins a pause after a failure.
  void Begin(Instant now) {
    end_ = now + pause_;
    pause_ = std::min(pause_ * 2, longest_);
  }
  // The pause lasts at least as long as a first one from now on.
  void Extend(Instant now) { end_ = std::max(end_, now + first_); }

 private:
  const std::chrono::milliseconds first_;
  const std::chrono::milliseconds longest_;
  std::chrono::milliseconds pause_;
  Instant end_;
};

}  // namespace rnicd::kubernetes
