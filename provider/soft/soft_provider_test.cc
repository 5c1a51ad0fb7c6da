#include "provider/soft/soft_provider.h"

#include <gtest/gtest.h>

#include <array>

#include "base/status.h"
#include "provider/soft/soft_nic.h"
#include "provider/soft/soft_region_memory.h"

namespace rnicd::provider {
namespace {

constexpr uint64_t kPage = kNdkPageBytes;

class SoftProviderTest : public ::testing::Test {
 protected:
  static std::unique_ptr<DeviceProtectionDomain> DomainOf(SoftProvider& provider, std::string_view name = "soft0") {
    auto adapter = provider.OpenAdapter(name);
    EXPECT_TRUE(adapter.ok());
    return *(*adapter)->CreateProtectionDomain();
  }
  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> Register(DeviceProtectionDomain& domain) {
    return domain.RegisterMemory(
        {.base = {kPage}, .length = kPage, .runs = {&run_, 1}, .rights = {.remote_read = true}});
  }

  KernelRandom random_;
  std::array<std::byte, kPage> page_{};
  std::span<std::byte> run_{page_};
};

TEST_F(SoftProviderTest, ListsItsCardsByName) {
  SoftProvider provider({.adapters = 3, .max_registration_bytes = 12345}, random_);
  const auto adapters = provider.ListAdapters();
  ASSERT_EQ(adapters.size(), 3u);
  EXPECT_EQ(adapters[0].name, "soft0");
  EXPECT_EQ(adapters[2].name, "soft2");
  EXPECT_EQ(adapters[1].info.max_registration_size, 12345u);
  EXPECT_EQ(adapters[1].numa_node, -1);
  EXPECT_EQ(provider.name(), "soft");
}

TEST_F(SoftProviderTest, AnUnknownAdapterIsRefused) {
  SoftProvider provider({}, random_);
  for (const char* const name : {"soft1", "", "SOFT0", "soft0 "}) {
    EXPECT_TRUE(FailedWith(provider.OpenAdapter(name).status(), ErrorReason::ADAPTER_NOT_FOUND)) << name;
    EXPECT_EQ(provider.FindNic(name), nullptr);
  }
}

TEST_F(SoftProviderTest, CountsTheRegionsThatAreAlive) {
  SoftProvider provider({.adapters = 2}, random_);
  const auto domain = DomainOf(provider, "soft0");
  const auto other = DomainOf(provider, "soft1");
  auto first = Register(*domain);
  auto second = Register(*other);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(provider.live_regions(), 2u);
  EXPECT_TRUE((*first)->Deregister().ok());
  EXPECT_TRUE((*first)->Deregister().ok()) << "a second call does nothing";
  EXPECT_EQ(provider.live_regions(), 1u);
  second->reset();
  EXPECT_EQ(provider.live_regions(), 0u) << "the destructor deregisters what is left";
}

TEST_F(SoftProviderTest, DeregisteringKillsBothTokensAndTheMemoryBehindThem) {
  SoftProvider provider({}, random_);
  const auto domain = DomainOf(provider);
  const auto region = Register(*domain);
  ASSERT_TRUE(region.ok());
  const RemoteToken remote = (*region)->remote_token();
  const auto memory = provider.FindNic("soft0")->keys().Find(remote);
  ASSERT_NE(memory, nullptr);
  ASSERT_TRUE((*region)->Deregister().ok());
  EXPECT_EQ(provider.FindNic("soft0")->keys().Find(remote), nullptr);
  std::byte byte{};
  EXPECT_TRUE(FailedWith(memory->RemoteRead(1, {kPage}, {&byte, 1}), ErrorReason::REMOTE_ACCESS))
      << "a peer that looked the token up before cannot use it now";
}

TEST_F(SoftProviderTest, AFullCardRefusesAndAnotherCardDoesNot) {
  SoftProvider provider({.adapters = 2, .max_regions = 1}, random_);
  const auto domain = DomainOf(provider, "soft0");
  const auto region = Register(*domain);
  ASSERT_TRUE(region.ok());
  EXPECT_TRUE(FailedWith(Register(*domain).status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_EQ(provider.live_regions(), 1u);
  EXPECT_TRUE(Register(*DomainOf(provider, "soft1")).ok());
}

TEST_F(SoftProviderTest, ASlowCardTakesItsTime) {
  constexpr std::chrono::milliseconds kDelay{20};
  SoftProvider provider({.register_delay = kDelay}, random_);
  const auto domain = DomainOf(provider);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(Register(*domain).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, kDelay);
}

TEST_F(SoftProviderTest, DomainsOfOneCardAreNotTheSame) {
  SoftProvider provider({}, random_);
  const uint64_t first = provider.FindNic("soft0")->NextDomain();
  EXPECT_NE(first, provider.FindNic("soft0")->NextDomain());
}

}  // namespace
}  // namespace rnicd::provider
