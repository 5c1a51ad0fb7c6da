#pragma once

#include <atomic>
#include <cstdint>

#include "base/secrets/random.h"

namespace rnicd {

// The same numbers for the same seed on every machine.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (splitmix64).
// Threads: safe.
class SeededRandom final : public RandomSource {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}

  uint64_t Next() override {
    constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
    uint64_t mixed = state_.fetch_add(kStep) + kStep;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

 private:
  std::atomic<uint64_t> state_;
};

}  // namespace rnicd
