#include "daemon/health/adapter_probe.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/secrets/random.h"
#include "base/status.h"
#include "base/system/faulty_os.h"
#include "provider/decorator/fault_injecting.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::health {
namespace {

// Counts how often an adapter is opened.
class CountingProvider final : public provider::Provider {
 public:
  explicit CountingProvider(provider::Provider& inner) : inner_(inner) {}

  std::string_view name() const override { return inner_.name(); }
  std::vector<provider::AdapterDescription> ListAdapters() const override { return inner_.ListAdapters(); }
  uint64_t live_regions() const override { return inner_.live_regions(); }
  provider::FastRegistrationCounts fast_registrations() const override { return inner_.fast_registrations(); }
  absl::StatusOr<std::unique_ptr<provider::DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override {
    ++openings_;
    return inner_.OpenAdapter(adapter_name);
  }
  int openings() const { return openings_; }

 private:
  provider::Provider& inner_;
  int openings_ = 0;
};

class AdapterProbeTest : public ::testing::Test {
 protected:
  static absl::Status Failure() { return MakeError(ErrorReason::DEVICE_FAILED); }

  KernelRandom random_;
  provider::SoftProvider soft_{{.max_regions = 1}, random_};
  provider::FaultPlan plan_;
  provider::FaultInjectingProvider faulty_{soft_, plan_};
  CountingProvider provider_{faulty_};
  FaultyOs os_{SystemOs()};
  AdapterProbe probe_{provider_, os_, "soft0"};
};

TEST_F(AdapterProbeTest, WorksAgainAndAgainAndLeavesNothing) {
  for (int run = 0; run < 3; ++run) {
    EXPECT_TRUE(probe_.Run().ok());
    EXPECT_FALSE(probe_.holds_region());
    EXPECT_EQ(soft_.live_regions(), 0u);
  }
  EXPECT_EQ(os_.live_mappings(), 1u) << "one page, however often";
}

TEST_F(AdapterProbeTest, FailingRegistrationIsTheFailureOfTheProbe) {
  plan_.FailRegister(Failure(), 1);
  EXPECT_EQ(probe_.Run(), Failure());
  EXPECT_FALSE(probe_.holds_region());
  EXPECT_TRUE(probe_.Run().ok());
}

TEST_F(AdapterProbeTest, FailingDeregistrationIsOneTooAndLeavesNothing) {
  plan_.FailDeregister(Failure(), 1);
  EXPECT_EQ(probe_.Run(), Failure());
  EXPECT_FALSE(probe_.holds_region());
  EXPECT_EQ(soft_.live_regions(), 0u);
  EXPECT_TRUE(probe_.Run().ok());
}

TEST_F(AdapterProbeTest, FailingProtectionDomainIsOneToo) {
  plan_.FailCreateProtectionDomain(Failure(), 1);
  EXPECT_EQ(probe_.Run(), Failure());
  EXPECT_TRUE(probe_.Run().ok());
}

TEST_F(AdapterProbeTest, TheAdapterStaysOpenAndIsOpenedAnewAfterAFailure) {
  EXPECT_TRUE(probe_.Run().ok());
  EXPECT_TRUE(probe_.Run().ok());
  EXPECT_EQ(provider_.openings(), 1);
  plan_.FailRegister(MakeError(ErrorReason::DEVICE_REMOVED), 1);
  EXPECT_TRUE(FailedWith(probe_.Run(), ErrorReason::DEVICE_REMOVED));
  EXPECT_TRUE(probe_.Run().ok());
  EXPECT_EQ(provider_.openings(), 2);
}

TEST_F(AdapterProbeTest, ACardThatIsFullFailsUntilThereIsRoom) {
  const auto adapter = *soft_.OpenAdapter("soft0");
  const auto domain = *adapter->CreateProtectionDomain();
  std::array<std::byte, kNdkPageBytes> page{};
  std::span<std::byte> run(page);
  auto region = domain->RegisterMemory({.base = {kNdkPageBytes}, .length = kNdkPageBytes, .runs = {&run, 1}});
  ASSERT_TRUE(region.ok());
  EXPECT_TRUE(FailedWith(probe_.Run(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  region->reset();
  EXPECT_TRUE(probe_.Run().ok());
}

TEST_F(AdapterProbeTest, AnAdapterThatIsNotThereFails) {
  AdapterProbe probe(provider_, os_, "soft7");
  EXPECT_TRUE(FailedWith(probe.Run(), ErrorReason::ADAPTER_NOT_FOUND));
}

TEST_F(AdapterProbeTest, WithoutAPageItFailsAndTriesAgain) {
  for (const char* step : {"CreateMemoryFile", "Map", "Populate"}) {
    os_.FailNext(step, MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
    EXPECT_TRUE(FailedWith(probe_.Run(), ErrorReason::MEMORY_PAGES_UNAVAILABLE)) << step;
    EXPECT_EQ(os_.live_mappings(), 0u) << step;
  }
  EXPECT_TRUE(probe_.Run().ok());
}

TEST_F(AdapterProbeTest, ItsPageGoesWithIt) {
  {
    AdapterProbe probe(provider_, os_, "soft0");
    EXPECT_TRUE(probe.Run().ok());
    EXPECT_EQ(os_.live_mappings(), 1u);
  }
  EXPECT_EQ(os_.live_mappings(), 0u);
}

}  // namespace
}  // namespace rnicd::health
