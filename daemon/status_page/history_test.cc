#include "daemon/status_page/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/status.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::status_page {
namespace {

using ::testing::SizeIs;

class HistoryTest : public ::testing::Test {
 protected:
  void Sample() { history_.Sample(clock_.Now(), ledger_); }
  void SampleAfter(std::chrono::seconds time) {
    clock_.Advance(time);
    Sample();
  }

  ManualClock clock_;
  core::Ledger ledger_{core::Limits{}, nullptr};
  History history_;
};

TEST_F(HistoryTest, APointSaysWhatTheNodeHolds) {
  ASSERT_TRUE(ledger_.Take(core::Resource::kPinnedBytes, 4096).ok());
  ASSERT_TRUE(ledger_.Take(core::Resource::kRegisteredBytes, 8192).ok());
  ASSERT_TRUE(ledger_.Take(core::Resource::kSessions, 3).ok());
  Sample();
  const std::vector<Point> points = history_.Points();
  ASSERT_THAT(points, SizeIs(1));
  EXPECT_EQ(points[0].pinned_bytes, 4096u);
  EXPECT_EQ(points[0].registered_bytes, 8192u);
  EXPECT_EQ(points[0].sessions, 3u);
}

TEST_F(HistoryTest, RatesAreWhatHappenedSinceThePointBefore) {
  history_.Report(core::RpcEnded{.method = "A.B", .code = absl::StatusCode::kOk});
  Sample();
  for (int time = 0; time < 20; ++time) {
    history_.Report(core::RpcEnded{.method = "A.B", .code = absl::StatusCode::kOk});
    history_.Report(core::RegistrationEnded{.status = absl::OkStatus()});
  }
  history_.Report(core::RegistrationEnded{.status = MakeError(ErrorReason::LENGTH_ZERO)});
  history_.Report(core::Decision{.what = "A.B", .status = MakeError(ErrorReason::LENGTH_ZERO)});
  history_.Report(core::Decision{.what = "A.B", .status = absl::OkStatus()});
  SampleAfter(std::chrono::seconds(10));
  SampleAfter(std::chrono::seconds(5));
  const std::vector<Point> points = history_.Points();
  ASSERT_THAT(points, SizeIs(3));
  EXPECT_EQ(points[0].calls, 0);
  EXPECT_DOUBLE_EQ(points[1].calls, 2);
  EXPECT_DOUBLE_EQ(points[1].registrations, 2);
  EXPECT_DOUBLE_EQ(points[1].failures, 0.1);
  EXPECT_EQ(points[2].calls, 0);
}

TEST_F(HistoryTest, TwoPointsAtOnceGiveNoRateOutOfNothing) {
  Sample();
  history_.Report(core::RpcEnded{.method = "A.B", .code = absl::StatusCode::kOk});
  Sample();
  EXPECT_EQ(history_.Points()[1].calls, 0);
}

TEST_F(HistoryTest, AQuarterOfAnHourIsKept) {
  ASSERT_EQ(History::kMost * History::kInterval, std::chrono::minutes(15));
  for (size_t point = 0; point < History::kMost; ++point) {
    SampleAfter(History::kInterval);
  }
  ASSERT_TRUE(ledger_.Take(core::Resource::kSessions, 1).ok());
  SampleAfter(History::kInterval);
  const std::vector<Point> points = history_.Points();
  ASSERT_THAT(points, SizeIs(History::kMost));
  EXPECT_EQ(points.front().sessions, 0u);
  EXPECT_EQ(points.back().sessions, 1u);
}

TEST_F(HistoryTest, TheSamplerTakesPointsByItself) {
  const Sampler sampler(history_, clock_, ledger_, std::chrono::milliseconds(1));
  EXPECT_TRUE(Eventually([this] { return history_.Points().size() >= 3; }));
}

TEST_F(HistoryTest, TheSamplerEndsWithoutWaitingForItsNextPoint) {
  const Instant began = std::chrono::steady_clock::now();
  {
    const Sampler sampler(history_, clock_, ledger_, std::chrono::hours(1));
    EXPECT_TRUE(Eventually([this] { return history_.Points().size() == 1; }));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::minutes(1));
}

}  // namespace
}  // namespace rnicd::status_page
