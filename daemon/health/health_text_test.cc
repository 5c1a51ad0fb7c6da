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

HealthReport Report(const std::vector<AdapterHealth>& adapters) { return HealthText(adapters, Instant() + kNow); }

TEST(HealthText, AllAdaptersWork) {
  const HealthReport report = Report({Healthy("rxe0"), Healthy("rxe1")});
  EXPECT_TRUE(report.ready);
  EXPECT_EQ(report.text, "ready\nrxe0 ok\nrxe1 ok\n");
}

TEST(HealthText, OneOfTwoIsReadyAndSaysWhichFails) {
  const HealthReport report =
      Report({Failing("rxe0", ErrorReason::DEVICE_FAILED, std::chrono::milliseconds(87'900)), Healthy("rxe1")});
  EXPECT_TRUE(report.ready);
  EXPECT_EQ(report.text, "ready\nrxe0 failing: DEVICE_FAILED since 12 s\nrxe1 ok\n");
}

TEST(HealthText, NoneThatWorksIsNotReady) {
  const HealthReport report = Report({Failing("rxe0", ErrorReason::DEVICE_REMOVED, std::chrono::seconds(100))});
  EXPECT_FALSE(report.ready);
  EXPECT_EQ(report.text, "not ready\nrxe0 failing: DEVICE_REMOVED since 0 s\n");
}

TEST(HealthText, NoAdapterIsNotReady) {
  const HealthReport report = Report({});
  EXPECT_FALSE(report.ready);
  EXPECT_EQ(report.text, "not ready\n");
}

}  // namespace
}  // namespace rnicd::health
