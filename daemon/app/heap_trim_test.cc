#include "daemon/app/heap_trim.h"

#include <gtest/gtest.h>

#include "base/manual_clock_fake.h"

namespace rnicd::app {
namespace {

class HeapTrimTest : public ::testing::Test {
 protected:
  void EndASession() { trim_.Report(core::SessionEnded{.id = SessionId{1}, .caller = caller_}); }
  void Pass(std::chrono::nanoseconds time) {
    clock_.Advance(time);
    alarms_.RunDue();
  }

  ManualClock clock_;
  core::Alarms alarms_{clock_};
  core::Caller caller_;
  int trims_ = 0;
  HeapTrim trim_{alarms_, [this] { ++trims_; }};
};

TEST_F(HeapTrimTest, SessionsThatEndTogetherAreTrimmedOnce) {
  EndASession();
  EndASession();
  Pass(HeapTrim::kDelay);
  EXPECT_EQ(trims_, 1);

  EndASession();
  Pass(HeapTrim::kDelay);
  EXPECT_EQ(trims_, 2) << "the next session to end is trimmed again";
}

TEST_F(HeapTrimTest, NothingIsDoneWhereNoSessionEnds) {
  trim_.Report(core::RpcEnded{.method = "A.B"});
  EXPECT_EQ(alarms_.count(), 0U);
  EndASession();
  Pass(HeapTrim::kDelay);
  EXPECT_EQ(alarms_.count(), 0U);
  Pass(HeapTrim::kDelay * 10);
  EXPECT_EQ(trims_, 1);
}

}  // namespace
}  // namespace rnicd::app
