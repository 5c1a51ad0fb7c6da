#include "daemon/core/region/adapter.h"

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

TEST(CheckNdkVersion, AcceptsEveryMinorUpToTheHighest) {
  for (uint16_t minor = 0; minor <= kNdkVersion.minor; ++minor) {
    EXPECT_TRUE(CheckNdkVersion({1, minor}).ok()) << minor;
  }
}

TEST(CheckNdkVersion, RefusesAnotherMajorAndANewerMinor) {
  for (const NdkVersion version : {NdkVersion{0, 0}, NdkVersion{2, 0}, NdkVersion{1, 3}, NdkVersion{UINT16_MAX, 2}}) {
    EXPECT_THAT(CheckNdkVersion(version), FailsAt(ErrorReason::NDK_VERSION_UNSUPPORTED, "version"));
  }
}

TEST(Adapter, ClosingGivesTheDeviceAndTheChargeBack) {
  World world;
  auto charge = Charge::Take(world.ledger, Resource::kAdapters, 1);
  const auto adapter = std::make_shared<Adapter>("soft0", *world.provider.OpenAdapter("soft0"), *std::move(charge));
  EXPECT_EQ(world.Held(), "adapters=1 ");
  ASSERT_TRUE(adapter->Close(nullptr).ok());
  EXPECT_EQ(world.Held(), "");
}

TEST(ProtectionDomain, HoldsItsAdapterOpen) {
  World world;
  const auto adapter = std::make_shared<Adapter>("soft0", *world.provider.OpenAdapter("soft0"), Charge());
  auto domain = ProtectionDomain::Create(adapter, std::make_shared<Charge>());
  ASSERT_TRUE(domain.ok());
  bool adapter_closed = false;
  EXPECT_EQ(*adapter->Close([&] { adapter_closed = true; }), Closable::CloseResult::kPending);
  EXPECT_THAT(ProtectionDomain::Create(adapter, std::make_shared<Charge>()).status(),
              FailsWith(ErrorReason::OBJECT_CLOSING));
  ASSERT_TRUE((*domain)->Close(nullptr).ok());
  EXPECT_TRUE(adapter_closed);
}

TEST(ProtectionDomain, ACardThatRefusesLeavesNothingBehind) {
  World world;
  const auto adapter = std::make_shared<Adapter>("soft0", *world.provider.OpenAdapter("soft0"), Charge());
  for (const ErrorReason reason : {ErrorReason::DEVICE_OUT_OF_RESOURCES, ErrorReason::DEVICE_FAILED}) {
    world.plan.FailCreateProtectionDomain(MakeError(reason), 1);
    EXPECT_THAT(ProtectionDomain::Create(adapter, std::make_shared<Charge>()).status(), FailsWith(reason));
  }
  EXPECT_EQ(*adapter->Close(nullptr), Closable::CloseResult::kClosed) << "a failed domain holds nothing";
}

}  // namespace
}  // namespace rnicd::core
