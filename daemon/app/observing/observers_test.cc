#include "daemon/app/observing/observers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/manual_clock_fake.h"

namespace rnicd::app {
namespace {

// Appends its name and the method of each call that ended.
class Witness final : public core::Observer {
 public:
  Witness(std::string name, bool heeds_successes, std::vector<std::string>& seen)
      : name_(std::move(name)), heeds_successes_(heeds_successes), seen_(seen) {}

  void Observe(const core::Observation& observation) override {
    if (const auto* const rpc = observation.As<core::RpcEnded>(); rpc != nullptr) {
      seen_.push_back(name_ + " " + std::string(rpc->method));
    }
  }
  bool HeedsSuccesses() const override { return heeds_successes_; }

 private:
  const std::string name_;
  const bool heeds_successes_;
  std::vector<std::string>& seen_;
};

TEST(Observers, EachObserverReceivesTheEventInOrder) {
  std::vector<std::string> seen;
  Witness first("first", false, seen);
  Witness second("second", false, seen);
  Observers observers({&first, &second});
  observers.Report(core::RpcEnded{.method = "A.B"});
  EXPECT_EQ(seen, (std::vector<std::string>{"first A.B", "second A.B"}));
}

TEST(Observers, OneThatHeedsSuccessesIsEnough) {
  std::vector<std::string> seen;
  Witness deaf("deaf", false, seen);
  Witness heedful("heedful", true, seen);
  EXPECT_FALSE(Observers({&deaf}).HeedsSuccesses());
  EXPECT_TRUE(Observers({&deaf, &heedful}).HeedsSuccesses());
}

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
