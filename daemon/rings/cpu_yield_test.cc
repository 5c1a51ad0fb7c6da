#include "daemon/rings/cpu_yield.h"

#include <gtest/gtest.h>

namespace rnicd::rings {
namespace {

using std::chrono::microseconds;

// A processor that a thread gets back `away` after it yields.
struct World final : Clock {
  Instant Now() const override { return now; }

  // How often the thread has yielded after serving for another `served`.
  int YieldsAfter(microseconds served) {
    now += served;
    const int before = yields;
    cpu_yield.Run(now);
    return yields - before;
  }

  Instant now;
  microseconds away{10};
  int yields = 0;
  CpuYield cpu_yield{*this, [this] {
                       ++yields;
                       now += away;
                     }};
};

TEST(CpuYieldTest, AClientOfThisProcessorIsLetInOnce) {
  World world;
  EXPECT_EQ(world.YieldsAfter(microseconds(1000)), 0);
  world.cpu_yield.ClientWaits(world.now);
  EXPECT_EQ(world.YieldsAfter(microseconds(19)), 0);
  world.cpu_yield.ClientWaits(world.now);
  EXPECT_EQ(world.YieldsAfter(microseconds(1)), 1) << "since the first of them waits";
  EXPECT_EQ(world.YieldsAfter(microseconds(1000)), 0);
}

TEST(CpuYieldTest, AThreadThatHasSleptOwesNothing) {
  World world;
  world.cpu_yield.ClientWaits(world.now);
  world.cpu_yield.Left();
  EXPECT_EQ(world.YieldsAfter(microseconds(1000)), 0);
}

TEST(CpuYieldTest, ABusyLoopBesideItCostsATwentiethAtMost) {
  World world;
  world.away = microseconds(3000);
  microseconds served{0};
  while (world.yields < 10) {
    world.cpu_yield.ClientWaits(world.now);
    world.YieldsAfter(microseconds(20));
    served += microseconds(20);
  }
  EXPECT_GE(served, world.yields * world.away * 20 - world.away * 20);
  world.away = microseconds(500);
  world.cpu_yield.ClientWaits(world.now);
  EXPECT_EQ(world.YieldsAfter(microseconds(60'000)), 1);
  world.cpu_yield.ClientWaits(world.now);
  EXPECT_EQ(world.YieldsAfter(microseconds(20)), 1) << "that was not long";
}

}  // namespace
}  // namespace rnicd::rings
