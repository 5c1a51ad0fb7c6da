#include "provider/decorator/fault_injecting.h"

#include <gtest/gtest.h>

#include <array>

#include "base/random.h"
#include "base/status.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::provider {
namespace {

class FaultInjectingTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> Register(DeviceProtectionDomain& domain) {
    return domain.RegisterMemory({.base = {kNdkPageBytes}, .length = kNdkPageBytes, .runs = {&run_, 1}});
  }

  KernelRandom random_;
  SoftProvider soft_{{}, random_};
  FaultPlan plan_;
  FaultInjectingProvider provider_{soft_, plan_};
  std::array<std::byte, kNdkPageBytes> page_{};
  std::span<std::byte> run_{page_};
};

TEST_F(FaultInjectingTest, WithoutAPlanItIsTheProviderInside) {
  EXPECT_EQ(provider_.name(), "soft");
  EXPECT_EQ(provider_.ListAdapters().size(), 1u);
  const auto adapter = provider_.OpenAdapter("soft0");
  ASSERT_TRUE(adapter.ok());
  EXPECT_EQ((*adapter)->info().max_registration_size, soft_.ListAdapters()[0].info.max_registration_size);
  const auto domain = (*adapter)->CreateProtectionDomain();
  const auto region = Register(**domain);
  ASSERT_TRUE(region.ok());
  EXPECT_NE((*region)->local_token().value, (*region)->remote_token().value);
  EXPECT_EQ(provider_.live_regions(), 1u);
  EXPECT_TRUE((*region)->Deregister().ok());
  EXPECT_TRUE(FailedWith(provider_.OpenAdapter("soft9").status(), ErrorReason::ADAPTER_NOT_FOUND));
}

TEST_F(FaultInjectingTest, PlannedCallsFailAsOftenAsPlannedAndChangeNothing) {
  const auto adapter = provider_.OpenAdapter("soft0");
  plan_.FailCreateProtectionDomain(MakeError(ErrorReason::DEVICE_FAILED), 1);
  EXPECT_TRUE(FailedWith((*adapter)->CreateProtectionDomain().status(), ErrorReason::DEVICE_FAILED));
  const auto domain = (*adapter)->CreateProtectionDomain();
  ASSERT_TRUE(domain.ok());
  plan_.FailRegister(MakeError(ErrorReason::DEVICE_NOT_CAPABLE), 2);
  EXPECT_TRUE(FailedWith(Register(**domain).status(), ErrorReason::DEVICE_NOT_CAPABLE));
  EXPECT_TRUE(FailedWith(Register(**domain).status(), ErrorReason::DEVICE_NOT_CAPABLE));
  EXPECT_EQ(provider_.live_regions(), 0u);
  const auto region = Register(**domain);
  ASSERT_TRUE(region.ok());
  plan_.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), 1);
  EXPECT_TRUE(FailedWith((*region)->Deregister(), ErrorReason::DEVICE_FAILED));
  EXPECT_EQ(provider_.live_regions(), 1u) << "a failed deregistration leaves the region as it was";
  EXPECT_TRUE((*region)->Deregister().ok());
}

}  // namespace
}  // namespace rnicd::provider
