#pragma once

#include <chrono>
#include <cstdint>

namespace rnicd::test {

// When a thread sleeps for a moment, and how long. A thread is left alone most of the time and for short times held up
// often, so that it falls behind others by more than one sleep. Constant initialization; threads: one.
class JitterDice {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using Microseconds = std::chrono::microseconds;

  // The same numbers for the same seed, which is not 0.
  constexpr explicit JitterDice(uint64_t seed) : state_(seed) {}

  // The sleep at a call that is made `now`, from 0 to `longest`. Times do not go back.
  Microseconds Roll(Milliseconds now, Microseconds longest) {
    if (now >= phase_end_) {
      BeginPhase(now);
    }
    if (Next() % kMillion >= sleeps_in_a_million_) {
      return Microseconds(0);
    }
    return Microseconds(static_cast<int64_t>(Next() % (static_cast<uint64_t>(longest.count()) + 1)));
  }

 private:
  static constexpr uint64_t kMillion = 1'000'000;

  void BeginPhase(Milliseconds now) {
    phase_end_ = now + Milliseconds(20 + static_cast<int64_t>(Next() % 100));
    const uint64_t kind = Next() % 10;
    sleeps_in_a_million_ = kind < 6 ? 0 : kind < 9 ? kMillion / 100 : kMillion / 4;
  }

  // Marsaglia's xorshift.
  uint64_t Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

  uint64_t state_;
  Milliseconds phase_end_{0};
  uint64_t sleeps_in_a_million_ = 0;
};

}  // namespace rnicd::test
