#include "daemon/door/entrance.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/manual_clock_fake.h"
#include "daemon/core/tenant/observation.h"

namespace rnicd::door {
namespace {

TEST(Entrance, SaysWhichLimitRefusesAConnection) {
  const ManualClock clock;
  const auto places = std::make_shared<Places>(3, 2);
  Entrance entrance(clock, places, {.per_second = 2, .burst = 2});
  const auto first = entrance.Admit("a");
  const auto second = entrance.Admit("a");
  EXPECT_NE(first.place, nullptr);
  EXPECT_EQ(entrance.Admit("a").refusal, core::kRefusedUidLimit);
  const auto third = entrance.Admit("b");
  EXPECT_TRUE(entrance.IsFull());
  EXPECT_EQ(entrance.Admit("b").refusal, core::kRefusedLimit);
}

TEST(Entrance, AConnectionAboveTheRateTakesNoPlace) {
  const ManualClock clock;
  const auto places = std::make_shared<Places>(2, 0);
  Entrance entrance(clock, places, {.per_second = 1, .burst = 1});
  const auto first = entrance.Admit("a");
  EXPECT_EQ(entrance.Admit("a").refusal, core::kRefusedRate);
  EXPECT_FALSE(entrance.IsFull());
}

}  // namespace
}  // namespace rnicd::door
