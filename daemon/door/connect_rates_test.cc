#include "daemon/door/connect_rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/manual_clock_fake.h"

namespace rnicd::door {
namespace {

TEST(ConnectRates, EachOwnerHasItsOwn) {
  ManualClock clock;
  ConnectRates rates(clock, {.per_second = 1, .burst = 2});
  EXPECT_FALSE(rates.IsTooFast("pod a"));
  EXPECT_FALSE(rates.IsTooFast("pod a"));
  EXPECT_TRUE(rates.IsTooFast("pod a"));
  EXPECT_FALSE(rates.IsTooFast("pod b"));
  clock.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(rates.IsTooFast("pod a"));
  EXPECT_TRUE(rates.IsTooFast("pod a"));
}

TEST(ConnectRates, WithoutARateNobodyIsTooFast) {
  ManualClock clock;
  ConnectRates rates(clock, {});
  for (int count = 0; count < 1000; ++count) {
    EXPECT_FALSE(rates.IsTooFast("pod a"));
  }
  EXPECT_EQ(rates.size(), 0u);
}

TEST(ConnectRates, OwnersThatWereQuietAreForgotten) {
  ManualClock clock;
  ConnectRates rates(clock, {.per_second = 1, .burst = 1});
  size_t most = 0;
  for (int count = 0; count < 1000; ++count) {
    (void)rates.IsTooFast("pod " + std::to_string(count));
    clock.Advance(std::chrono::seconds(1));
    most = std::max(most, rates.size());
  }
  EXPECT_LE(most, 70u);
}

}  // namespace
}  // namespace rnicd::door
