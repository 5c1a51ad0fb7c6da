#include "daemon/core/tenant/rate_limiter.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class RateLimiterTest : public ::testing::Test {
 protected:
  // Number of actions that pass now, out of `most` attempts.
  static uint64_t Passing(RateLimiter& limiter, uint64_t most) {
    uint64_t passed = 0;
    for (uint64_t index = 0; index < most; ++index) {
      passed += limiter.Take().has_value() ? 0 : 1;
    }
    return passed;
  }

  ManualClock clock_;
};

TEST_F(RateLimiterTest, WithoutARateEverythingPasses) {
  RateLimiter limiter(clock_, {});
  EXPECT_EQ(Passing(limiter, 100000), 100000u);
  EXPECT_EQ(limiter.per_second(), 0u);
  EXPECT_TRUE(limiter.idle());
}

TEST_F(RateLimiterTest, ABurstPassesAtOnceAndTheNextGetsTheTimeToWait) {
  RateLimiter limiter(clock_, {.per_second = 10, .burst = 3});
  EXPECT_EQ(Passing(limiter, 3), 3u);
  EXPECT_EQ(limiter.Take(), milliseconds(100));
  clock_.Advance(milliseconds(40));
  EXPECT_EQ(limiter.Take(), milliseconds(60));
}

TEST_F(RateLimiterTest, WhatIsCountedDelaysWhatFollows) {
  RateLimiter limiter(clock_, {.per_second = 10});
  limiter.Count(12);
  EXPECT_EQ(limiter.Take(), milliseconds(300)) << "two more than a second's worth, and one that asks";
  clock_.Advance(milliseconds(500));
  EXPECT_EQ(Passing(limiter, 10), 3u);
}

TEST_F(RateLimiterTest, WhateverIsCountedTheDelayHasAnEnd) {
  for (const uint64_t actions : {uint64_t{21}, uint64_t{1000}, UINT64_MAX}) {
    RateLimiter by_second(clock_, {.per_second = 10, .burst = 1});
    by_second.Count(actions);
    by_second.Count(actions);
    EXPECT_EQ(by_second.Take(), milliseconds(1100)) << actions;
    RateLimiter by_burst(clock_, {.per_second = 10, .burst = 20});
    by_burst.Count(actions);
    by_burst.Count(actions);
    EXPECT_EQ(by_burst.Take(), milliseconds(2100)) << actions;
  }
}

TEST_F(RateLimiterTest, WithoutARateNothingIsCounted) {
  RateLimiter limiter(clock_, {});
  limiter.Count(UINT64_MAX);
  EXPECT_TRUE(limiter.idle());
}

TEST_F(RateLimiterTest, AfterTheWaitOnePassesAndNotBefore) {
  RateLimiter limiter(clock_, {.per_second = 3, .burst = 1});
  ASSERT_FALSE(limiter.Take().has_value());
  const nanoseconds wait = limiter.Take().value_or(nanoseconds(0));
  clock_.Advance(wait - nanoseconds(1));
  EXPECT_EQ(limiter.Take(), nanoseconds(1));
  clock_.Advance(nanoseconds(1));
  EXPECT_EQ(Passing(limiter, 5), 1u);
}

TEST_F(RateLimiterTest, WithoutABurstASecondsWorthPassesAtOnce) {
  RateLimiter limiter(clock_, {.per_second = 7});
  EXPECT_EQ(Passing(limiter, 100), 7u);
}

TEST_F(RateLimiterTest, WhatIsRefusedDoesNotCount) {
  RateLimiter limiter(clock_, {.per_second = 10, .burst = 1});
  EXPECT_EQ(Passing(limiter, 1000), 1u);
  clock_.Advance(milliseconds(100));
  EXPECT_FALSE(limiter.Take().has_value());
}

TEST_F(RateLimiterTest, APauseSavesNoMoreThanTheBurst) {
  RateLimiter limiter(clock_, {.per_second = 10, .burst = 4});
  for (const nanoseconds pause : {nanoseconds(seconds(10)), nanoseconds(hours(24 * 365 * 10))}) {
    clock_.Advance(pause);
    EXPECT_EQ(Passing(limiter, 100), 4u);
  }
}

TEST_F(RateLimiterTest, ASteadyPaceIsNeverRefused) {
  RateLimiter limiter(clock_, {.per_second = 1000, .burst = 1});
  for (int call = 0; call < 5000; ++call) {
    ASSERT_FALSE(limiter.Take().has_value()) << call;
    clock_.Advance(milliseconds(1));
  }
}

// Each row exceeds its rate for a while.
TEST_F(RateLimiterTest, InTheLongRunNoMoreThanTheRatePasses) {
  struct Row {
    Rate rate;
    nanoseconds step;
    uint64_t steps;
  };
  // The last rates do not divide a second.
  const Row rows[] = {{{.per_second = 1, .burst = 1}, milliseconds(100), 1000},
                      {{.per_second = 1000, .burst = 20}, milliseconds(1), 1000},
                      {{.per_second = 1'000'000'000, .burst = 3000}, microseconds(1), 50},
                      {{.per_second = 3, .burst = 2}, milliseconds(100), 1000},
                      {{.per_second = 600'000, .burst = 1200}, milliseconds(1), 100},
                      {{.per_second = 600'000'000, .burst = 3000}, microseconds(1), 50}};
  for (const Row& row : rows) {
    RateLimiter limiter(clock_, row.rate);
    uint64_t passed = Passing(limiter, 2 * row.rate.burst);
    for (uint64_t step = 0; step < row.steps; ++step) {
      clock_.Advance(row.step);
      passed += Passing(limiter, 2 * row.rate.burst);
    }
    const auto time = static_cast<uint64_t>((row.step * row.steps).count());
    const uint64_t allowed = row.rate.per_second * time / 1'000'000'000 + row.rate.burst;
    EXPECT_LE(passed, allowed) << row.rate.per_second << " a second";
    EXPECT_GE(passed, allowed / 2) << row.rate.per_second << " a second";
  }
}

TEST_F(RateLimiterTest, TheHighestRateLetsOneThroughEachNanosecond) {
  RateLimiter limiter(clock_, {.per_second = 1'000'000'000, .burst = 5});
  EXPECT_EQ(Passing(limiter, 100), 5u);
  EXPECT_EQ(limiter.Take(), nanoseconds(1));
  clock_.Advance(nanoseconds(2));
  EXPECT_EQ(Passing(limiter, 100), 2u);
}

TEST_F(RateLimiterTest, AHugeBurstIsABurst) {
  for (const uint64_t burst : {uint64_t{1} << 34, uint64_t{1} << 62, UINT64_MAX}) {
    RateLimiter limiter(clock_, {.per_second = 1, .burst = burst});
    EXPECT_EQ(Passing(limiter, 1000), 1000u) << burst;
    clock_.Advance(hours(1));
    EXPECT_EQ(Passing(limiter, 1000), 1000u) << burst;
  }
}

TEST_F(RateLimiterTest, AChangedRateCountsAtOnceAndForgivesNothing) {
  RateLimiter limiter(clock_, {.per_second = 1000, .burst = 10});
  EXPECT_EQ(Passing(limiter, 100), 10u);
  limiter.Set({.per_second = 10, .burst = 1});
  EXPECT_EQ(limiter.per_second(), 10u);
  EXPECT_EQ(Passing(limiter, 100), 0u) << "what passed before still counts";
  clock_.Advance(milliseconds(10));
  EXPECT_EQ(Passing(limiter, 100), 1u);
  clock_.Advance(milliseconds(100));
  EXPECT_EQ(Passing(limiter, 100), 1u);
}

TEST_F(RateLimiterTest, ARateThatIsLiftedOrSetAnewCountsAtOnce) {
  RateLimiter limiter(clock_, {.per_second = 1, .burst = 1});
  EXPECT_EQ(Passing(limiter, 10), 1u);
  limiter.Set({});
  EXPECT_EQ(Passing(limiter, 1000), 1000u);
  clock_.Advance(seconds(2));
  limiter.Set({.per_second = 2, .burst = 2});
  EXPECT_EQ(Passing(limiter, 1000), 2u);
}

// An operator that raises a tenant's rate must not block it for as long as its old burst would have taken.
TEST_F(RateLimiterTest, AFasterRateIsNotHeldUpByTheBurstOfASlowerOne) {
  RateLimiter limiter(clock_, {.per_second = 1, .burst = 3600});
  EXPECT_EQ(Passing(limiter, 3600), 3600u);
  limiter.Set({.per_second = 1000});
  clock_.Advance(seconds(2));
  EXPECT_FALSE(limiter.Take().has_value());
}

TEST_F(RateLimiterTest, UndoGivesOneBack) {
  RateLimiter limiter(clock_, {.per_second = 10, .burst = 2});
  EXPECT_EQ(Passing(limiter, 10), 2u);
  limiter.Undo();
  EXPECT_EQ(Passing(limiter, 10), 1u);
}

TEST_F(RateLimiterTest, AnUndoAfterAPauseSavesNothingUp) {
  RateLimiter limiter(clock_, {.per_second = 10, .burst = 2});
  ASSERT_FALSE(limiter.Take().has_value());
  clock_.Advance(seconds(10));
  limiter.Undo();
  EXPECT_EQ(Passing(limiter, 10), 2u);
}

TEST_F(RateLimiterTest, IsIdleOnceWhatPassedIsOver) {
  RateLimiter limiter(clock_, {.per_second = 10, .burst = 3});
  EXPECT_TRUE(limiter.idle());
  EXPECT_EQ(Passing(limiter, 3), 3u);
  clock_.Advance(milliseconds(299));
  EXPECT_FALSE(limiter.idle()) << "a limiter made anew would let more through";
  clock_.Advance(milliseconds(1));
  EXPECT_TRUE(limiter.idle());
}

void OnThreads(int count, const std::function<void()>& work) {
  std::vector<std::thread> threads;
  for (int index = 0; index < count; ++index) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(RateLimiterTest, OfRacingCallsExactlyTheBurstPasses) {
  RateLimiter limiter(clock_, {.per_second = 10, .burst = 500});
  std::atomic<uint64_t> passed{0};
  OnThreads(8, [&] { passed += Passing(limiter, 1000); });
  EXPECT_EQ(passed, 500u);
}

TEST_F(RateLimiterTest, RacingUndosGiveBackExactlyWhatWasTaken) {
  RateLimiter limiter(clock_, {.per_second = 10, .burst = 500});
  OnThreads(8, [&] {
    for (int round = 0; round < 1000; ++round) {
      if (!limiter.Take().has_value()) {
        limiter.Undo();
      }
    }
  });
  EXPECT_EQ(Passing(limiter, 1000), 500u);
}

// Each thread advances the clock now and then, so that calls race with time too.
TEST_F(RateLimiterTest, WhileTimeGoesOnRacingCallsNeverPassTheRate) {
  constexpr uint64_t kThreads = 8;
  constexpr uint64_t kSteps = 200;
  RateLimiter limiter(clock_, {.per_second = 10000, .burst = 50});
  std::atomic<uint64_t> passed{0};
  OnThreads(kThreads, [&] {
    for (uint64_t step = 0; step < kSteps; ++step) {
      clock_.Advance(microseconds(250));
      passed += Passing(limiter, 20);
    }
  });
  const uint64_t allowed = kThreads * kSteps * 250 / 100 + 50;
  EXPECT_LE(passed, allowed);
  EXPECT_GE(passed, allowed / 2);
}

TEST_F(RateLimiterTest, ARateMayChangeWhileCallsPass) {
  RateLimiter limiter(clock_, {.per_second = 1000, .burst = 10});
  OnThreads(4, [&] {
    for (int round = 0; round < 1000; ++round) {
      limiter.Set(round % 2 == 0 ? Rate{.per_second = 10, .burst = 5} : Rate{.per_second = 1000, .burst = 10});
      (void)limiter.Take();
      (void)limiter.idle();
    }
  });
  limiter.Set({.per_second = 100, .burst = 7});
  clock_.Advance(hours(1));
  EXPECT_EQ(Passing(limiter, 100), 7u) << "the last rate is the one in force";
}

}  // namespace
}  // namespace rnicd::core
