#include "daemon/health/probe_record.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace rnicd::health {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeout{3000};

class ProbeRecordTest : public ::testing::Test {
 protected:
  static Instant At(int64_t ms) { return Instant() + milliseconds(ms); }
  static absl::Status Failure() { return MakeError(ErrorReason::DEVICE_FAILED); }
  void Probe(int64_t from_ms, int64_t to_ms, const absl::Status& status) {
    record_.Began(At(from_ms));
    record_.Ended(At(to_ms), status);
  }
  const AdapterHealth& health() const { return record_.health(); }

  ProbeRecord record_{"card0", kTimeout};
};

TEST_F(ProbeRecordTest, NothingIsHealthyBeforeTheFirstResult) {
  record_.Began(At(0));
  record_.CheckTimeout(At(2999));
  EXPECT_FALSE(record_.evaluated());
  EXPECT_FALSE(health().healthy);
  EXPECT_EQ(health().adapter, "card0");
}

TEST_F(ProbeRecordTest, AProbeThatWorksMakesItHealthy) {
  Probe(100, 130, absl::OkStatus());
  EXPECT_TRUE(record_.evaluated());
  EXPECT_TRUE(health().healthy);
  EXPECT_TRUE(health().status.ok());
  EXPECT_EQ(health().since, At(130));
  EXPECT_EQ(health().last_duration, milliseconds(30));
  EXPECT_EQ(health().probes_ok, 1u);
  EXPECT_EQ(health().probes_failed, 0u);
}

TEST_F(ProbeRecordTest, OneFailureMakesItUnhealthyAndOneSuccessHealthyAgain) {
  Probe(0, 1, absl::OkStatus());
  Probe(1000, 1001, Failure());
  EXPECT_FALSE(health().healthy);
  EXPECT_EQ(health().status, Failure());
  EXPECT_EQ(health().since, At(1001));
  Probe(2000, 2001, absl::OkStatus());
  EXPECT_TRUE(health().healthy);
  EXPECT_TRUE(health().status.ok());
  EXPECT_EQ(health().since, At(2001));
}

TEST_F(ProbeRecordTest, TheTimeOfTheChangeStaysWhileNothingChanges) {
  Probe(0, 1, Failure());
  Probe(1000, 1001, MakeError(ErrorReason::DEVICE_REMOVED));
  EXPECT_EQ(health().since, At(1));
  EXPECT_TRUE(FailedWith(health().status, ErrorReason::DEVICE_REMOVED)) << "the last reason is the one that counts";
  EXPECT_EQ(health().probes_failed, 2u);
}

TEST_F(ProbeRecordTest, AProbeThatHangsIsAFailureBeforeItEnds) {
  Probe(0, 1, absl::OkStatus());
  record_.Began(At(1000));
  EXPECT_EQ(record_.late_at(), At(4000));
  record_.CheckTimeout(At(3999));
  EXPECT_TRUE(health().healthy);
  record_.CheckTimeout(At(4000));
  EXPECT_FALSE(health().healthy);
  EXPECT_TRUE(FailedWith(health().status, ErrorReason::DEVICE_FAILED));
  EXPECT_EQ(health().since, At(4000));
  EXPECT_EQ(health().probes_failed, 1u);
  EXPECT_FALSE(record_.late_at().has_value()) << "it times out once";
}

TEST_F(ProbeRecordTest, AProbeThatSucceedsTooLateIsOneFailure) {
  record_.Began(At(0));
  record_.CheckTimeout(At(3000));
  record_.Ended(At(9000), absl::OkStatus());
  EXPECT_FALSE(health().healthy);
  EXPECT_EQ(health().probes_ok, 0u);
  EXPECT_EQ(health().probes_failed, 1u);
  EXPECT_EQ(health().last_duration, milliseconds(9000));
}

TEST_F(ProbeRecordTest, LatenessIsSeenThoughNobodyLookedInTime) {
  Probe(0, 3000, absl::OkStatus());
  EXPECT_FALSE(health().healthy);
  EXPECT_EQ(health().probes_failed, 1u);
}

TEST_F(ProbeRecordTest, AfterAHangTheNextProbeInTimeMakesItHealthy) {
  Probe(0, 9000, absl::OkStatus());
  Probe(10000, 10001, absl::OkStatus());
  EXPECT_TRUE(health().healthy);
  EXPECT_EQ(health().since, At(10001));
}

}  // namespace
}  // namespace rnicd::health
