#include "client/kubernetes/daemon_watch.h"

#include "base/manual_clock_fake.h"
#include "client/cpp/transport_failure.h"
#include "gtest/gtest.h"

namespace rnicd::kubernetes {
namespace {

using std::chrono::seconds;

constexpr uint64_t kUnit = 1 << 20;
const std::string kWatchedResource = "x.io/memory-1mi";

// Returns the status set by the test, and accepts no grants.
class AnsweringDaemon final : public Daemon {
 public:
  absl::StatusOr<v1::GetStatusResponse> Status() override {
    if (away) {
      return TransportFailure(absl::StatusCode::kUnavailable, "nobody listens");
    }
    return status;
  }
  absl::StatusOr<v1::CreateGrantResponse> CreateGrant(const v1::CreateGrantRequest&) override { return NotAsked(); }
  absl::StatusOr<std::vector<v1::GrantInfo>> Grants() override { return NotAsked(); }
  absl::StatusOr<uint64_t> RevokeGrant(uint64_t) override { return NotAsked(); }
  absl::StatusOr<std::string> BindGrant(uint64_t, const std::string&) override { return NotAsked(); }
  absl::Status SetPods(const v1::SetPodsRequest&) override { return NotAsked(); }

  void SetLimit(const std::string& name, uint64_t limit) {
    v1::ResourceUse& resource = *status.add_resources();
    resource.set_name(name);
    resource.set_limit(limit);
  }

  v1::GetStatusResponse status;
  bool away = false;

 private:
  static absl::Status NotAsked() { return absl::UnimplementedError("the watch only looks"); }
};

class DaemonWatchTest : public ::testing::Test {
 protected:
  DaemonWatchTest() {
    daemon_.status.set_pid(17);
    daemon_.status.set_uptime_ms(1'000);
    AddAdapter(/*healthy=*/true);
    daemon_.SetLimit("pinned_bytes", 4 * kUnit);
  }

  void AddAdapter(bool healthy) { daemon_.status.add_adapters()->set_healthy(healthy); }

  const std::vector<Device>& Devices() {
    devices_ = watch_.boards().at(kWatchedResource)->Get().devices;
    return devices_;
  }
  bool AllAre(bool healthy) {
    const std::vector<Device>& devices = Devices();
    return !devices.empty() &&
           std::all_of(devices.begin(), devices.end(), [=](const Device& one) { return one.healthy == healthy; });
  }

  AnsweringDaemon daemon_;
  ManualClock clock_;
  const log::Logger logger_{{.level = log::Level::kError}};
  DaemonWatch watch_{daemon_,
                     clock_,
                     logger_,
                     {.resources = {{.name = kWatchedResource, .unit_bytes = kUnit}},
                      .machine_bytes = 1024 * kUnit,
                      .timeout = seconds(5)}};
  std::vector<Device> devices_;
};

TEST_F(DaemonWatchTest, KnowsNothingBeforeTheDaemonHasAnswered) {
  daemon_.away = true;
  EXPECT_FALSE(watch_.Poll().reachable);
  clock_.Advance(seconds(60));
  watch_.Poll();
  EXPECT_FALSE(watch_.known());
  EXPECT_TRUE(Devices().empty());
}

TEST_F(DaemonWatchTest, TheNodesLimitGivesTheNumberOfDevices) {
  const DaemonWatch::PollResult seen = watch_.Poll();
  EXPECT_TRUE(seen.reachable);
  EXPECT_TRUE(seen.is_new);
  EXPECT_TRUE(watch_.known());
  EXPECT_EQ(Devices().size(), 4u);
  EXPECT_TRUE(AllAre(/*healthy=*/true));
}

TEST_F(DaemonWatchTest, TheLowerLimitCounts) {
  daemon_.SetLimit("memory_bytes", 3 * kUnit);
  watch_.Poll();
  EXPECT_EQ(Devices().size(), 3u);
}

TEST_F(DaemonWatchTest, DevicesFollowTheAdaptersHealth) {
  watch_.Poll();
  daemon_.status.mutable_adapters(0)->set_healthy(false);
  watch_.Poll();
  EXPECT_TRUE(AllAre(/*healthy=*/false));
  daemon_.status.mutable_adapters(0)->set_healthy(true);
  watch_.Poll();
  EXPECT_TRUE(AllAre(/*healthy=*/true));
}

TEST_F(DaemonWatchTest, DevicesAreNearTheirAdapter) {
  daemon_.status.mutable_adapters(0)->set_numa_node(1);
  watch_.Poll();
  EXPECT_EQ(Devices().front().numa_node, 1);
}

TEST_F(DaemonWatchTest, ADrainingDaemonGetsNoNewPods) {
  daemon_.status.set_draining(true);
  watch_.Poll();
  EXPECT_TRUE(AllAre(/*healthy=*/false));
}

TEST_F(DaemonWatchTest, AShortAbsenceChangesNothingAndALongOneTurnsAllUnhealthy) {
  watch_.Poll();
  daemon_.away = true;
  clock_.Advance(seconds(5));
  watch_.Poll();
  EXPECT_TRUE(AllAre(/*healthy=*/true));
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(watch_.Poll().reachable);
  EXPECT_TRUE(AllAre(/*healthy=*/false));
  EXPECT_EQ(Devices().size(), 4u) << "devices that are gone for a moment keep their ids";
  daemon_.away = false;
  watch_.Poll();
  EXPECT_TRUE(AllAre(/*healthy=*/true));
}

TEST_F(DaemonWatchTest, ANewDaemonIsToldFromTheOldOne) {
  watch_.Poll();
  daemon_.status.set_uptime_ms(2'000);
  EXPECT_FALSE(watch_.Poll().is_new);
  daemon_.status.set_uptime_ms(10);
  EXPECT_TRUE(watch_.Poll().is_new) << "it cannot be younger than it was";
  daemon_.status.set_uptime_ms(5'000);
  daemon_.status.set_pid(18);
  EXPECT_TRUE(watch_.Poll().is_new) << "another process that was looked at late";
}

TEST_F(DaemonWatchTest, FlagsThatDoNotSuitTheNodeAreAnErrorOfThePlan) {
  daemon_.status.mutable_resources(0)->set_limit(4096);
  EXPECT_TRUE(watch_.Poll().reachable);
  EXPECT_FALSE(watch_.known());
  EXPECT_NE(watch_.plan_error().message().find("not a single unit"), std::string_view::npos) << watch_.plan_error();
  daemon_.status.mutable_resources(0)->set_limit(kUnit);
  watch_.Poll();
  EXPECT_TRUE(watch_.plan_error().ok());
}

// The old plan stays: a failed plan must not take devices from pods that have them.
TEST_F(DaemonWatchTest, ALimitThatIsTooLowForOneDeviceChangesNothing) {
  watch_.Poll();
  daemon_.status.mutable_resources(0)->set_limit(4096);
  EXPECT_TRUE(watch_.Poll().reachable);
  EXPECT_EQ(Devices().size(), 4u);
}

}  // namespace
}  // namespace rnicd::kubernetes
