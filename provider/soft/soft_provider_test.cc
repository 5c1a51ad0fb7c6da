#include "provider/soft/soft_provider.h"

#include <array>
#include <string>

#include "provider/api/provider_side_test.h"
#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {
namespace {

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

// The status of one request that was posted and executed at once.
NtStatus Result(ProviderSide& side, WorkRequest request) {
  side.Post(std::move(request));
  const auto completions = side.listener().completions(WorkQueue::kInitiator);
  return completions.empty() ? NtStatus::kPending : completions.back().status;
}

TEST_F(SoftProviderTest, CardsOfOneProviderReachEachOther) {
  SoftProvider provider({.adapters = 2}, random_);
  ProviderSide here(provider, "soft0");
  ProviderSide there(provider, "soft1");
  Connect(here, there);
  ASSERT_TRUE(there.pair().Enqueue(Receive(5)).ok());
  there.pair().Kick();
  EXPECT_EQ(Result(here, Send(1)), NtStatus::kSuccess);
  EXPECT_EQ(there.listener().outcomes(WorkQueue::kReceive),
            (Outcomes{{5, OperationType::kReceive, NtStatus::kSuccess}}));
}

TEST_F(SoftProviderTest, ProvidersDoNotReachEachOther) {
  SoftProvider provider({}, random_);
  SoftProvider other({}, random_);
  ProviderSide here(provider, "soft0");
  ProviderSide there(other, "soft0");
  EXPECT_TRUE(FailedWith(here.pair().Connect(there.pair().address()), ErrorReason::QP_ADDRESS_UNKNOWN));
}

TEST_F(SoftProviderTest, ALongTransferAndASlowReadGoOnBesideTheCaller) {
  SoftProvider provider({.read_delay = std::chrono::milliseconds(1)}, random_);
  ProviderSide owner(provider, "soft0");
  ProviderSide peer(provider, "soft0");
  Connect(owner, peer);
  std::vector<std::byte> bytes(3 << 20);
  std::span<std::byte> run(bytes);
  const DeviceRegistration registration{.base = {kPage}, .length = run.size(), .runs = {&run, 1}, .rights = kAllRights};
  const auto source = owner.domain().RegisterMemory(registration);
  const auto sink = peer.domain().RegisterMemory(registration);
  ASSERT_TRUE(source.ok() && sink.ok());
  const Entries all{{.address = {kPage}, .length = 3 << 20, .token = (*sink)->local_token()}};
  const RemoteToken remote = (*source)->remote_token();
  ASSERT_TRUE(peer.pair().Enqueue(Request(1, all, ReadWork{{kPage}, remote})).ok());
  for (uint64_t context = 2; context <= 4; ++context) {
    ASSERT_TRUE(peer.pair().Enqueue(Request(context, all, WriteWork{{kPage}, remote})).ok());
  }
  peer.pair().Kick();
  ASSERT_TRUE(peer.listener().WaitFor(WorkQueue::kInitiator, 4));
  for (const Completion& completion : peer.listener().completions(WorkQueue::kInitiator)) {
    EXPECT_EQ(completion.status, NtStatus::kSuccess);
  }
}

TEST_F(SoftProviderTest, EachDomainHasAPrivilegedTokenThatNoPeerCanUse) {
  SoftProvider provider({}, random_);
  ProviderSide owner(provider, "soft0");
  ProviderSide peer(provider, "soft0");
  const LocalToken token = owner.domain().privileged_token();
  EXPECT_NE(token.value, 0u);
  EXPECT_EQ(owner.domain().privileged_token(), token);
  EXPECT_NE(peer.domain().privileged_token(), token);
  Connect(owner, peer);
  std::byte byte{};
  WorkRequest write = Request(1, {}, WriteWork{{0}, RemoteToken{token.value}});
  write.payload = Entries{{.host = {&byte, 1}, .length = 1}};
  EXPECT_EQ(Result(peer, std::move(write)), NtStatus::kAccessViolation);
}

TEST_F(SoftProviderTest, AFastRegionHasAsManyPagesAsTheCardAllows) {
  SoftProvider provider({.max_fast_register_pages = 8}, random_);
  const auto domain = DomainOf(provider);
  EXPECT_TRUE(FailedWith(domain->CreateFastRegion(9, true).status(), ErrorReason::PAGE_COUNT_UNSUPPORTED));
  EXPECT_EQ(provider.live_regions(), 0u) << "a refusal leaves nothing behind";
  const auto region = domain->CreateFastRegion(8, true);
  ASSERT_TRUE(region.ok());
  EXPECT_EQ(provider.live_regions(), 1u);
}

TEST_F(SoftProviderTest, AFullCardRefusesFastRegionsAndWindowsToo) {
  SoftProvider provider({.max_regions = 1}, random_);
  const auto domain = DomainOf(provider);
  const auto window = domain->CreateMemoryWindow();
  ASSERT_TRUE(window.ok());
  EXPECT_TRUE(FailedWith(domain->CreateFastRegion(1, true).status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_TRUE(FailedWith(domain->CreateMemoryWindow().status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  (*window)->Retire();
}

TEST_F(SoftProviderTest, ACompletionQueueTakesAnySize) {
  SoftProvider provider({}, random_);
  ProviderSide side(provider, "soft0");
  EXPECT_TRUE(side.queue().Resize(1).ok());
  EXPECT_TRUE(side.queue().Resize(65536).ok());
}

TEST_F(SoftProviderTest, TheFlagsOfItsOptionsAreReported) {
  SoftProvider provider({.adapter_flags = kAdapterFlagInOrderDma}, random_);
  EXPECT_EQ(provider.ListAdapters()[0].info.adapter_flags, kAdapterFlagInOrderDma);
  EXPECT_EQ(SoftProvider({}, random_).ListAdapters()[0].info.adapter_flags, 0x10113u);
}

TEST_F(SoftProviderTest, AQueuePairThatGoesEndsWhatItWasDoing) {
  SoftProvider provider({.read_delay = std::chrono::hours(1)}, random_);
  ProviderSide owner(provider, "soft0");
  {
    ProviderSide peer(provider, "soft0");
    Connect(owner, peer);
    ASSERT_TRUE(peer.pair().Enqueue(Request(1, {}, ReadWork{{kPage}, {}})).ok());
    ASSERT_TRUE(peer.pair().Enqueue(Send(2)).ok());
    peer.pair().Kick();
  }
  EXPECT_EQ(owner.listener().peer_gone(), 1);
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

}  // namespace
}  // namespace rnicd::provider
