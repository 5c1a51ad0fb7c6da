#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/secrets/seeded_random_fake.h"

namespace rnicd::simulation {

using rnicd::SeededRandom;

// Makes every decision of a simulation. Each draw is a statement of its own: the order in which a compiler evaluates
// arguments must not change what a seed means.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  uint64_t Next() { return random_.Next(); }
  // `end` is at least 1.
  uint64_t Below(uint64_t end) { return random_.Next() % end; }
  uint64_t Between(uint64_t first, uint64_t last) { return first + Below(last - first + 1); }
  bool Chance(uint64_t percent) { return Below(100) < percent; }
  // `from` is not empty.
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(Below(from.size()))];
  }

 private:
  SeededRandom random_;
};

}  // namespace rnicd::simulation
