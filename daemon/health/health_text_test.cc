#include "daemon/health/health_text.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace rnicd::health {
namespace {

constexpr std::chrono::seconds kNow{100};

AdapterHealth Healthy(const std::string& adapter) {
  AdapterHealth health;
  health.adapter = adapter;
  health.healthy = true;
  return health;
}

AdapterHealth Failing(const std::string& adapter, ErrorReason reason, std::chrono::milliseconds since) {
  AdapterHealth health;
  health.adapter = adapter;
  health.status = MakeError(reason);
  health.since = Instant() + since;
  return health;
}

HealthReport Report(const std::vector<AdapterHealth>& adapters, const ServingVerdict& serving = {}) {
  return ReadinessText(adapters, serving, Instant() + kNow);
}

const ServingVerdict kHangs = {.hanging = {{.part = "rpc loop 1", .text = "rpc loop 1 has not answered for 7 s"}},
                               .failing = {}};
const ServingVerdict kFails = {.hanging = {}, .failing = {{.part = "watcher", .text = "rpc.sock was removed"}}};

TEST(HealthText, AllAdaptersWork) {
  const HealthReport report = Report({Healthy("rxe0"), Healthy("rxe1")});
  EXPECT_TRUE(report.good);
  EXPECT_EQ(report.text, "ready\nrxe0 ok\nrxe1 ok\n");
}

TEST(HealthText, OneOfTwoIsReadyAndSaysWhichFails) {
  const HealthReport report =
      Report({Failing("rxe0", ErrorReason::DEVICE_FAILED, std::chrono::milliseconds(87'900)), Healthy("rxe1")});
  EXPECT_TRUE(report.good);
  EXPECT_EQ(report.text, "ready\nrxe0 failing: DEVICE_FAILED since 12 s\nrxe1 ok\n");
}

TEST(HealthText, NoneThatWorksIsNotReady) {
  const HealthReport report = Report({Failing("rxe0", ErrorReason::DEVICE_REMOVED, std::chrono::seconds(100))});
  EXPECT_FALSE(report.good);
  EXPECT_EQ(report.text, "not ready\nrxe0 failing: DEVICE_REMOVED since 0 s\n");
}

TEST(HealthText, NoAdapterIsNotReady) {
  const HealthReport report = Report({});
  EXPECT_FALSE(report.good);
  EXPECT_EQ(report.text, "not ready\n");
}

TEST(HealthText, ADaemonThatHangsIsNotReadyWhateverItsCards) {
  const HealthReport report = Report({Healthy("rxe0")}, kHangs);
  EXPECT_FALSE(report.good);
  EXPECT_EQ(report.text, "not ready\nrpc loop 1 has not answered for 7 s\nrxe0 ok\n");
}

TEST(HealthText, APartThatCannotServeIsNotReadyButAlive) {
  EXPECT_FALSE(Report({Healthy("rxe0")}, kFails).good);
  EXPECT_EQ(Report({Healthy("rxe0")}, kFails).text, "not ready\nrpc.sock was removed\nrxe0 ok\n");
  EXPECT_TRUE(LivenessText(kFails).good);
  EXPECT_EQ(LivenessText(kFails).text, "ok\n");
}

TEST(HealthText, OnlyAHangIsNotAlive) {
  EXPECT_TRUE(LivenessText({}).good);
  EXPECT_FALSE(LivenessText(kHangs).good);
  EXPECT_EQ(LivenessText(kHangs).text, "hangs\nrpc loop 1 has not answered for 7 s\n");
}

}  // namespace
}  // namespace rnicd::health
