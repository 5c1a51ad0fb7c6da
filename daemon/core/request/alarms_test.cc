#include "daemon/core/request/alarms.h"

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

using std::chrono::milliseconds;

class AlarmsTest : public ::testing::Test {
 protected:
  Alarms::Key Set(int delay_ms) {
    return alarms_.Set(milliseconds(delay_ms), [this, delay_ms] { rung_.push_back(delay_ms); });
  }
  // Advances the clock and returns the delays of the alarms that rang.
  std::vector<int> After(int passed_ms) {
    clock_.Advance(milliseconds(passed_ms));
    alarms_.RunDue();
    return std::exchange(rung_, {});
  }

  ManualClock clock_;
  std::vector<int> rung_;
  Alarms alarms_{clock_};
};

TEST_F(AlarmsTest, RingInTheOrderOfTheirTimesAndOnce) {
  Set(30);
  Set(10);
  Set(20);
  EXPECT_EQ(After(9), std::vector<int>{});
  EXPECT_EQ(After(11), (std::vector<int>{10, 20}));
  EXPECT_EQ(After(100), std::vector<int>{30});
  EXPECT_EQ(After(100), std::vector<int>{});
}

TEST_F(AlarmsTest, ThoseOfOneTimeRingInTheOrderTheyWereSet) {
  Set(5);
  alarms_.Set(milliseconds(5), [this] { rung_.push_back(6); });
  EXPECT_EQ(After(5), (std::vector<int>{5, 6}));
}

TEST_F(AlarmsTest, OneThatWasCancelledIsGone) {
  const Alarms::Key first = Set(10);
  Set(10);
  alarms_.Cancel(first);
  EXPECT_EQ(alarms_.count(), 1u);
  EXPECT_EQ(After(10), std::vector<int>{10});
  alarms_.Cancel(first);
}

TEST_F(AlarmsTest, AJobMaySetAndCancelAlarms) {
  const Alarms::Key other = Set(20);
  alarms_.Set(milliseconds(10), [&] {
    alarms_.Cancel(other);
    Set(0);
  });
  EXPECT_EQ(After(30), std::vector<int>{0});
}

TEST(AlarmsThread, RunsJobsAndJoinsWithJobsLeft) {
  const SteadyClock clock;
  Awaited<int> rung;
  Alarms alarms(clock);
  alarms.Start();
  alarms.Set(std::chrono::hours(1), [&] { rung.Set(2); });
  alarms.Set(milliseconds(1), [&] { rung.Set(1); });
  EXPECT_EQ(rung.Get(), 1);
}

}  // namespace
}  // namespace rnicd::core
