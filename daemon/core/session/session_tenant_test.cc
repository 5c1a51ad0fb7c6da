// Constraints of a tenant on its sessions: pages that are counted once, limits and rates, and a node that is drained.

#include "daemon/core/queue/queue_fixture_test.h"
#include "daemon/core/session/fd_exchange.h"
#include "daemon/core/session/session_rate_fixture_test.h"

namespace rnicd::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

uint64_t Pinned(const Ledger& ledger) { return ledger.used(Resource::kPinnedBytes) / kPage; }
uint64_t Registered(const Ledger& ledger) { return ledger.used(Resource::kRegisteredBytes) / kPage; }

// --- pages ---

TEST(SessionPages, RegionsOverTheSamePagesPayForThemOnce) {
  World world;
  Owner owner(world);
  const MemoryObjectId memory = owner.Memory(4);
  const ProtectionDomainId domain = owner.Domain();
  const MemoryRegionId larger = owner.Region(domain);
  ASSERT_TRUE(owner.Register(larger, memory, 4 * kPage).ok());
  const MemoryRegionId smaller = owner.Region(domain);
  ASSERT_TRUE(owner.Register(smaller, memory, 3 * kPage).ok());
  EXPECT_EQ(Pinned(owner.session->ledger()), 4u);
  EXPECT_EQ(Registered(owner.session->ledger()), 7u);
  EXPECT_EQ(Pinned(*world.ledger), 4u);
  ASSERT_TRUE(owner.Deregister(larger).ok());
  EXPECT_EQ(Pinned(*world.ledger), 3u);
  ASSERT_TRUE(owner.Close(smaller).ok());
  EXPECT_EQ(Pinned(*world.ledger) + Registered(*world.ledger), 0u);
}

TEST(SessionPages, AChainThatNamesAPageTwicePaysForItOnce) {
  World world;
  Owner owner(world);
  const MemoryObjectId memory = owner.Memory(3);
  const MdlEntry chain[] = {
      {.memory_id = memory, .byte_offset = 0, .byte_count = 2 * kPage, .virtual_address = {kRegionBase}},
      {.memory_id = memory,
       .byte_offset = kPage,
       .byte_count = 2 * kPage,
       .virtual_address = {kRegionBase + 2 * kPage}}};
  const auto registered = owner.session->Begin()->regions().Register(
      {.region = owner.Region(), .chain = chain, .length = 4 * kPage, .flags = kMrFlagRemoteWrite}, {}, nullptr);
  ASSERT_TRUE(registered.ok()) << registered.status();
  EXPECT_EQ(Pinned(owner.session->ledger()), 3u);
  EXPECT_EQ(Registered(owner.session->ledger()), 4u);
}

TEST(SessionPages, EntriesThatShareAPageRegisterItOnce) {
  World world;
  Owner owner(world);
  const MemoryObjectId memory = owner.Memory(2);
  const MdlEntry chain[] = {
      {.memory_id = memory, .byte_offset = 0, .byte_count = 100, .virtual_address = {kRegionBase}},
      {.memory_id = memory, .byte_offset = 100, .byte_count = kPage, .virtual_address = {kRegionBase + 100}}};
  ASSERT_TRUE(owner.session->Begin()
                  ->regions()
                  .Register({.region = owner.Region(), .chain = chain, .length = kPage + 100, .flags = 0}, {}, nullptr)
                  .ok());
  EXPECT_EQ(Pinned(owner.session->ledger()), 2u);
  EXPECT_EQ(Registered(owner.session->ledger()), 2u);
}

TEST(SessionPages, SessionsOfATenantAreHeldToItsLimitTogether) {
  TenantLimits limits;
  limits.tenant[Resource::kPinnedBytes] = 4 * kPage;
  World world(OneTenant(limits));
  Owner first(world, 1);
  Owner second(world, 2);
  const MemoryObjectId memory = first.Memory(3);
  ASSERT_TRUE(first.Register(first.Region(), memory, 3 * kPage).ok());
  const MemoryObjectId others = second.Memory(2);
  const MemoryRegionId region = second.Region();
  const absl::Status refused = second.Register(region, others, 2 * kPage).status();
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_PINNED_BYTES));
  EXPECT_EQ(ErrorInfoOf(refused).limit, 4 * kPage);
  EXPECT_EQ(ErrorInfoOf(refused).used, 3 * kPage);
  EXPECT_EQ(ErrorInfoOf(refused).requested, 2 * kPage);
  EXPECT_EQ(Pinned(second.session->ledger()), 0u);
  ASSERT_TRUE(first.Register(first.Region(), memory, 3 * kPage).ok()) << "the tenant has paid for these";
  world.End(first.session);
  EXPECT_TRUE(second.Register(region, others, 2 * kPage).ok());
}

TEST(SessionPages, AMappingAndARegionOverTheSamePagesPayOnce) {
  World world;
  QueueOwner owner(world);
  const MemoryObjectId memory = owner.Memory(3);
  ASSERT_TRUE(owner.Register(owner.Region(owner.domain), memory, 2 * kPage).ok());
  const BuiltLam lam = owner.Lam(memory, 3);
  EXPECT_EQ(Pinned(owner.session->ledger()), 3u);
  EXPECT_EQ(Registered(owner.session->ledger()), 5u);
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  EXPECT_EQ(Pinned(owner.session->ledger()), 2u);
}

// --- limits ---

TEST(SessionLimits, TheTenantsWordOnItsSessionsComesBeforeTheNodes) {
  TenantLimits limits;
  limits.session[Resource::kAdapters] = 2;
  WorldOptions options = OneTenant(limits);
  options.limits.session[Resource::kAdapters] = 1;
  options.limits.session[Resource::kRegions] = 7;
  World world(options);
  const Owner owner(world);
  EXPECT_EQ(owner.session->ledger().limit(Resource::kAdapters), 2u);
  EXPECT_EQ(owner.session->ledger().limit(Resource::kRegions), 7u) << "where it says nothing the node's counts";
}

TEST(SessionLimits, ASessionKeepsTheLimitsItWasOpenedWith) {
  TenantLimits limits;
  limits.session[Resource::kAdapters] = 2;
  limits.tenant[Resource::kAdapters] = 9;
  World world(OneTenant(limits));
  const Owner before(world, 1);
  limits.session[Resource::kAdapters] = 5;
  limits.tenant[Resource::kAdapters] = 6;
  world.tenants.SetPolicy(*OneTenant(limits).policy);
  const Owner after(world, 2);
  EXPECT_EQ(before.session->ledger().limit(Resource::kAdapters), 2u);
  EXPECT_EQ(after.session->ledger().limit(Resource::kAdapters), 5u);
  EXPECT_EQ(before.session->tenant().limits().tenant[Resource::kAdapters], 6u) << "the tenant's own count at once";
}

// --- rates ---

TEST_F(SessionRateTest, ASessionIsHeldToItsOwnRateAndGetsTheWait) {
  EXPECT_EQ(Wait(first_), std::nullopt);
  EXPECT_EQ(Wait(first_), std::nullopt);
  nanoseconds wait{0};
  const absl::Status refused = first_.session->AdmitCall(&wait);
  EXPECT_THAT(refused, FailsWith(ErrorReason::RATE_LIMITED));
  EXPECT_EQ(ErrorInfoOf(refused).limit, 10u);
  EXPECT_EQ(wait, milliseconds(100));
  world_.clock.Advance(milliseconds(100));
  EXPECT_EQ(Wait(first_), std::nullopt);
}

TEST_F(SessionRateTest, WhatASessionIsRefusedItsTenantDoesNotPay) {
  EXPECT_EQ(Wait(first_), std::nullopt);
  EXPECT_EQ(Wait(first_), std::nullopt);
  for (int call = 0; call < 100; ++call) {
    EXPECT_NE(Wait(first_), std::nullopt);
  }
  EXPECT_EQ(Wait(second_), std::nullopt) << "one of the tenant's three was left";
}

TEST_F(SessionRateTest, TogetherTheyAreHeldToTheTenantsRate) {
  EXPECT_EQ(Wait(first_), std::nullopt);
  EXPECT_EQ(Wait(first_), std::nullopt);
  EXPECT_EQ(Wait(second_), std::nullopt);
  nanoseconds wait{0};
  const absl::Status refused = second_.session->AdmitCall(&wait);
  EXPECT_THAT(refused, FailsWith(ErrorReason::RATE_LIMITED));
  EXPECT_EQ(ErrorInfoOf(refused).limit, 100u) << "the figure is that of the rate that refused";
  EXPECT_EQ(wait, milliseconds(10));
}

TEST_F(SessionRateTest, WhatTheTenantRefusesTheSessionDoesNotPay) {
  EXPECT_EQ(Wait(first_), std::nullopt);
  EXPECT_EQ(Wait(first_), std::nullopt);
  EXPECT_EQ(Wait(second_), std::nullopt);
  for (int call = 0; call < 100; ++call) {
    EXPECT_EQ(Wait(second_), milliseconds(10));
  }
  world_.clock.Advance(milliseconds(10));
  EXPECT_EQ(Wait(second_), std::nullopt) << "its second call, as if the refused ones had never been";
}

TEST_F(SessionRateTest, ANewSessionDoesNotRenewTheTenantsRate) {
  EXPECT_EQ(Wait(first_), std::nullopt);
  EXPECT_EQ(Wait(first_), std::nullopt);
  EXPECT_EQ(Wait(second_), std::nullopt);
  world_.End(first_.session);
  const Owner third(world_, 3);
  EXPECT_EQ(Wait(third), milliseconds(10));
}

TEST_F(SessionRateTest, WhatARequestCostsCountsAgainstBothRates) {
  ASSERT_TRUE(first_.TryAllocate({.size = kPopulatedBytesPerRequest * 2}).ok());
  EXPECT_EQ(Wait(first_), milliseconds(100));
  EXPECT_EQ(Wait(second_), std::nullopt) << "one of the tenant's three was left";
  EXPECT_EQ(Wait(second_), milliseconds(10));
}

TEST_F(SessionRateTest, ManyProvisionedRegionsCountThoughTheirBytesAreFew) {
  const ProtectionDomainId domain = first_.Domain();
  const std::vector<ProvisionRange> ranges(2 * kProvisionedRegionsPerRequest,
                                           {.length = 1, .address = {0x7f0000000000}});
  ASSERT_TRUE(first_.session->Begin()
                  ->regions()
                  .Provision({.memory = first_.Memory(1), .domain = domain, .ranges = ranges}, nullptr)
                  .succeeded());
  EXPECT_EQ(Wait(first_), milliseconds(100));
}

TEST_F(SessionRateTest, ItemsOfABatchOfMemoryCountAsCalls) {
  first_.session->Begin()->memory().CountItems(2);
  EXPECT_EQ(Wait(first_), milliseconds(100));
  EXPECT_EQ(Wait(second_), std::nullopt) << "one of the tenant's three was left";
}

TEST_F(SessionRateTest, ASmallRequestCostsNoMoreThanItself) {
  ASSERT_TRUE(first_.TryAllocate({.size = kPage}).ok());
  EXPECT_EQ(Wait(first_), std::nullopt);
  EXPECT_EQ(Wait(first_), std::nullopt);
}

TEST_F(SessionRateTest, OfRacingCallsTheTenantAdmitsNoMoreThanItsBurst) {
  std::vector<std::unique_ptr<Owner>> owners;
  for (uint64_t number = 10; number < 18; ++number) {
    owners.push_back(std::make_unique<Owner>(world_, number));
  }
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  for (const auto& owner : owners) {
    threads.emplace_back([&admitted, &owner] {
      for (int call = 0; call < 200; ++call) {
        admitted += Wait(*owner).has_value() ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(admitted, 3);
}

// --- draining ---

TEST(SessionDrain, RefusesWhatTakesOnMemoryAndRegistrationsAndChangesNothing) {
  World world;
  QueueOwner owner(world);
  const MemoryObjectId memory = owner.Memory(1);
  const MemoryRegionId region = owner.Region(owner.domain);
  const std::string held = world.Held();
  world.draining = true;
  const auto draining = FailsWith(ErrorReason::DAEMON_DRAINING);
  EXPECT_THAT(owner.TryAllocate({.size = kPage}).status(), draining);
  EXPECT_THAT(owner.session->Begin()->memory().Import(kPage).status(), draining);
  EXPECT_THAT(owner.Register(region, memory, kPage).status(), draining);
  EXPECT_THAT(owner.TryLam(memory, kPage).status(), draining);
  EXPECT_THAT(world.registry.Open(CallerNumbered(5), "").status(), draining);
  EXPECT_EQ(world.Held(), held);
  world.draining = false;
  EXPECT_TRUE(owner.Register(region, memory, kPage).ok()) << "a drain may be taken back";
  EXPECT_TRUE(world.registry.Open(CallerNumbered(5), "").ok());
}

TEST(SessionDrain, WhatIsThereGoesOnUntilItsOwnerEndsIt) {
  Connected scene;
  QueueOwner& owner = scene.owner;
  const MemoryObjectId memory = owner.Memory(1);
  const MemoryRegionId region = owner.RegisteredRegion();
  const MemoryRegionId fast = owner.FastRegion();
  const BuiltLam lam = owner.Lam(owner.Memory(1), 1);
  const MemoryWindowId window = owner.Window();
  const auto import = owner.session->Begin()->memory().Import(kPage);
  ASSERT_TRUE(import.ok());
  scene.world.draining = true;
  EXPECT_TRUE(ExchangeFd(scene.world.node, owner.session->owner(), import->ticket, MemoryFile(1 * kPage)).ok());
  EXPECT_TRUE((*owner.session->Begin()->memory().Find(import->memory))->Seal().ok());
  EXPECT_TRUE(scene.world.registry.Join(owner.session->id(), owner.session->owner()).ok());
  EXPECT_TRUE(owner.session->Begin()->regions().GetLocalToken(region).ok());
  EXPECT_TRUE(owner.session->Begin()->adapters().QueryInfo(owner.adapter).ok());
  owner.MustPost(scene.pair, {FastRegister(fast, PagesOf(lam)), Invalidate(fast), Bind(region, window)});
  owner.MustPost(scene.pair, {Invalidate(window), Send()});
  scene.peer.MustPost(scene.peer_pair, {Receive()});
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>(5, NtStatus::kSuccess));
  EXPECT_TRUE(owner.CloseWindow(window).ok());
  EXPECT_TRUE(owner.Deregister(region).ok());
  EXPECT_TRUE(owner.Close(region).ok());
  EXPECT_TRUE(owner.Close(fast).ok());
  EXPECT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  EXPECT_TRUE(
      Owner::Await([&](const Done<>& done) { return owner.session->Begin()->memory().Release(memory, done); }).ok());
  EXPECT_TRUE(owner.ClosePair(scene.pair).ok());
  EXPECT_FALSE(owner.session->ending());
}

}  // namespace
}  // namespace rnicd::core
