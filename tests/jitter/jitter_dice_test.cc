#include "tests/jitter/jitter_dice.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace rnicd::test {
namespace {

constexpr JitterDice::Microseconds kLongest{4'000};

// Sleeps in each 20 ms of ten seconds with ten calls in a millisecond.
std::vector<int> SleepsOf(uint64_t seed) {
  JitterDice dice(seed);
  std::vector<int> sleeps(500);
  for (int call = 0; call < 100'000; ++call) {
    const JitterDice::Microseconds sleep = dice.Roll(JitterDice::Milliseconds(call / 10), kLongest);
    EXPECT_LE(sleep, kLongest);
    sleeps[static_cast<size_t>(call) / 200] += sleep.count() > 0 ? 1 : 0;
  }
  return sleeps;
}

TEST(JitterDice, LeavesAThreadAloneAndHoldsItUpOften) {
  const std::vector<int> sleeps = SleepsOf(1);
  EXPECT_GT(std::count(sleeps.begin(), sleeps.end(), 0), 200);
  EXPECT_GT(std::count_if(sleeps.begin(), sleeps.end(), [](int count) { return count > 30; }), 10);
}

TEST(JitterDice, OtherSeedsMakeOtherSleeps) { EXPECT_NE(SleepsOf(1), SleepsOf(2)); }

}  // namespace
}  // namespace rnicd::test
