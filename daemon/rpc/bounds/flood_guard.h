#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "daemon/rpc/bounds/limits.h"

namespace rnicd::rpc {

// Counts the frames of a client that bring it no response. Forgets them with each response, and after ten seconds.
class FloodGuard {
 public:
  FloodGuard(const Limits& limits, Instant now)
      : idle_frames_max_(limits.idle_frames_max), given_up_max_(limits.given_up_max), since_(now) {}

  // A frame that belongs to no call: a ping, settings, the connection's window update, a priority, a refused one. False
  // when there are too many.
  bool CountIdle(Instant now) {
    ForgetOld(now);
    return ++idle_frames_ <= idle_frames_max_;
  }
  // Frames for calls that are given up: resets, window updates, and all that FrameFilter takes out. False when there
  // are too many.
  bool CountGivenUp(uint32_t frames, Instant now) {
    ForgetOld(now);
    given_up_ += frames;
    return given_up_ <= given_up_max_;
  }
  void Forget() {
    idle_frames_ = 0;
    given_up_ = 0;
  }

 private:
  static constexpr std::chrono::seconds kPeriod{10};

  void ForgetOld(Instant now) {
    if (now - since_ > kPeriod) {
      since_ = now;
      Forget();
    }
  }

  const uint32_t idle_frames_max_;
  const uint32_t given_up_max_;
  uint32_t idle_frames_ = 0;
  uint32_t given_up_ = 0;
  Instant since_;
};

}  // namespace rnicd::rpc
