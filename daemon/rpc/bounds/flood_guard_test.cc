#include "daemon/rpc/bounds/flood_guard.h"

#include <gtest/gtest.h>

namespace rnicd::rpc {
namespace {

using std::chrono::seconds;

class FloodGuardTest : public testing::Test {
 protected:
  // Idle frames until there are too many.
  int IdleFrames() {
    int count = 0;
    while (guard_.CountIdle(now_)) {
      ++count;
    }
    return count;
  }

  Instant now_{seconds(1000)};
  FloodGuard guard_{{.idle_frames_max = 20, .given_up_max = 30}, now_};
};

TEST_F(FloodGuardTest, AllowsAsManyFramesOfEachKindAsItsLimitsSay) {
  EXPECT_TRUE(guard_.CountGivenUp(29, now_));
  EXPECT_TRUE(guard_.CountGivenUp(1, now_));
  EXPECT_EQ(IdleFrames(), 20);
  EXPECT_FALSE(guard_.CountGivenUp(1, now_));
}

TEST_F(FloodGuardTest, AResponsePaysForAll) {
  IdleFrames();
  guard_.CountGivenUp(30, now_);
  guard_.Forget();
  EXPECT_EQ(IdleFrames(), 20);
  EXPECT_TRUE(guard_.CountGivenUp(30, now_));
}

TEST_F(FloodGuardTest, TenSecondsPayForAll) {
  IdleFrames();
  now_ += seconds(10);
  EXPECT_FALSE(guard_.CountIdle(now_));
  now_ += std::chrono::nanoseconds(1);
  EXPECT_EQ(IdleFrames(), 20);
  now_ += seconds(10);
  EXPECT_FALSE(guard_.CountIdle(now_)) << "the next ten have begun with a frame";
}

}  // namespace
}  // namespace rnicd::rpc
