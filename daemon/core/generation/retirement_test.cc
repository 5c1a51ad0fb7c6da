#include "daemon/core/generation/retirement.h"

#include <map>
#include <thread>

#include "daemon/core/generation/generation_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr char kTenant[] = "uid/uid=1000";

WorldOptions HundredRegions() {
  WorldOptions options;
  options.uid_limits[Resource::kRegions] = 100;
  options.uid_limits[Resource::kSessions] = 4;
  return options;
}

absl::StatusOr<Charge> TakeRegions(const Owner& owner, uint64_t regions) {
  return Charge::Take(owner.session->shared_ledger(), Resource::kRegions, regions);
}

uint64_t RegionsOf(const std::vector<HeldUse>& held) {
  const std::optional<HeldUse> share = ShareOf(held, kTenant);
  return share.has_value() ? HeldOf(*share, Resource::kRegions) : 0;
}

HeldUse LeaseOf(uint64_t regions) {
  HeldUse lease{.tenant = kTenant};
  lease.held[static_cast<size_t>(Resource::kRegions)] = regions;
  return lease;
}

TEST(Retirement, SessionsAreOpenedByTheNewerGeneration) {
  Generation older;
  const Owner owner(older, 1);
  ASSERT_EQ(older.retirement.Begin(IgnoreGone).processes, std::vector{CallerNumbered(1).process});
  const auto handed_over = FailsWith(ErrorReason::DAEMON_HANDED_OVER);
  EXPECT_THAT(older.registry.Open(CallerNumbered(1), "").status(), handed_over);
  EXPECT_THAT(older.registry.Open(CallerNumbered(2), "").status(), handed_over);
  EXPECT_THAT(older.registry.Join(owner.session->id(), CallerNumbered(2)).status(), handed_over);
  EXPECT_TRUE(older.registry.Join(owner.session->id(), CallerNumbered(1)).ok()) << "its session is here";
  EXPECT_THAT(older.registry.Join(SessionId{1}, CallerNumbered(1)).status(), FailsWith(ErrorReason::SESSION_NOT_FOUND));
  older.retirement.Cancel();
  EXPECT_TRUE(older.registry.Open(CallerNumbered(2), "").ok());
  EXPECT_THAT(older.registry.Join(owner.session->id(), CallerNumbered(3)).status(),
              FailsWith(ErrorReason::SESSION_NOT_FOUND));
}

TEST(Retirement, AProcessIsGoneOnceWhenItsLastSessionHasEnded) {
  Generation older;
  const Owner first(older, 1);
  const Owner second(older, 1);
  std::vector<ProcessKey> gone;
  EXPECT_FALSE(older.retirement.Holds(CallerNumbered(1).process));
  older.retirement.Begin([&](const ProcessKey& process) { gone.push_back(process); });
  older.End(first.session);
  EXPECT_TRUE(gone.empty());
  EXPECT_TRUE(older.retirement.Holds(CallerNumbered(1).process));
  EXPECT_FALSE(older.retirement.Holds(CallerNumbered(2).process));
  EXPECT_FALSE(older.retirement.empty());
  older.End(second.session);
  older.End(second.session);
  EXPECT_EQ(gone, std::vector{CallerNumbered(1).process});
  EXPECT_FALSE(older.retirement.Holds(CallerNumbered(1).process));
  EXPECT_TRUE(older.retirement.empty());
}

TEST(Retirement, EachProcessIsGoneOnceHoweverItsSessionsEnd) {
  constexpr uint64_t kProcesses = 8;
  Generation older;
  std::vector<Owner> owners;
  for (uint64_t number = 0; number < 4 * kProcesses; ++number) {
    owners.emplace_back(older, number % kProcesses);
  }
  Mutex mutex;
  std::map<ProcessKey, int> gone;
  older.retirement.Begin([&](const ProcessKey& process) {
    MutexLock lock(mutex);
    ++gone[process];
  });
  std::vector<std::thread> threads;
  for (uint64_t index = 0; index < 4; ++index) {
    threads.emplace_back([&, index] {
      for (uint64_t number = 0; number < kProcesses; ++number) {
        older.registry.EndAllOf(CallerNumbered((number + index) % kProcesses).process, EndCause::kProcessExited);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  owners.clear();
  older.Stop();
  EXPECT_EQ(gone.size(), kProcesses);
  EXPECT_TRUE(std::all_of(gone.begin(), gone.end(), [](const auto& entry) { return entry.second == 1; }));
}

TEST(Retirement, ATenantKeepsHalfOfWhatIsFreeAndGetsMoreOnRequest) {
  Generation older(HundredRegions());
  const Owner owner(older);
  const auto before = TakeRegions(owner, 20);
  const Inheritance inheritance = older.retirement.Begin(IgnoreGone);
  EXPECT_EQ(RegionsOf(inheritance.held), 60u);
  EXPECT_EQ(HeldOf(*ShareOf(inheritance.held, kTenant), Resource::kSessions), 1u) << "none will be added";
  EXPECT_EQ(HeldOf(*ShareOf(inheritance.held, ""), Resource::kRegions), 20u) << "the node has no limit";
  const auto under = TakeRegions(owner, 30);
  EXPECT_TRUE(under.ok());
  EXPECT_LE(RegionsOf(older.retirement.Tick().wanted), 60u) << "it has enough";
  older.retirement.Granted(LeaseOf(60));
  ExpectFigures(TakeRegions(owner, 15).status(), ErrorReason::QUOTA_REGIONS, 60, 50, 15);
  EXPECT_EQ(RegionsOf(older.retirement.Tick().wanted), 65u);
  EXPECT_EQ(RegionsOf(older.retirement.Tick().wanted), 0u) << "no second time before the answer";
  EXPECT_FALSE(TakeRegions(owner, 15).ok());
  older.retirement.Granted(LeaseOf(65));
  EXPECT_TRUE(TakeRegions(owner, 15).ok());
}

TEST(Retirement, AShareThatBecomesSmallIsEnlargedBeforeItIsUsedUp) {
  Generation older(HundredRegions());
  const Owner owner(older);
  older.retirement.Begin(IgnoreGone);
  const auto most = TakeRegions(owner, 48);
  EXPECT_EQ(RegionsOf(older.retirement.Tick().wanted), 54u) << "an eighth of what is free";
  older.retirement.Granted(LeaseOf(51));
  EXPECT_TRUE(TakeRegions(owner, 3).ok()) << "the answer counts, not the wish";
  EXPECT_FALSE(TakeRegions(owner, 4).ok());
}

TEST(Retirement, WhatIsNotUsedGoesToTheNewerGeneration) {
  Generation older(HundredRegions());
  const Owner owner(older);
  const auto held = TakeRegions(owner, 20);
  older.retirement.Begin(IgnoreGone);
  uint64_t told = 0;
  int ticks = 0;
  for (; told == 0; ++ticks) {
    ASSERT_LT(ticks, 100);
    told = RegionsOf(older.retirement.Tick().shrunk);
  }
  EXPECT_GT(ticks, 10) << "a program may soon need again what it has released";
  EXPECT_EQ(told, 30u);
  EXPECT_FALSE(TakeRegions(owner, 11).ok());
  EXPECT_TRUE(TakeRegions(owner, 10).ok());
}

TEST(Retirement, WhatASessionLeavesGoesToTheNewerGenerationAtOnce) {
  Generation older(HundredRegions());
  const Owner owner(older, 1);
  const Owner other(older, 2);
  auto held = TakeRegions(other, 60);
  ASSERT_EQ(RegionsOf(older.retirement.Begin(IgnoreGone).held), 80u);
  held->Refund();
  older.End(other.session);
  EXPECT_EQ(RegionsOf(older.retirement.Tick().shrunk), 12u);
  older.End(owner.session);
  const std::vector<HeldUse> shrunk = older.retirement.Tick().shrunk;
  EXPECT_EQ(ShareOf(shrunk, kTenant)->held, HeldUse{}.held);
  EXPECT_EQ(ShareOf(shrunk, "")->held, HeldUse{}.held);
  EXPECT_TRUE(older.retirement.Tick().shrunk.empty());
}

TEST(Retirement, CancelLeavesNothingOfIt) {
  Generation older(HundredRegions());
  const Owner owner(older);
  const IssuedGrant idle =
      *older.tenants.CreateGrant({.name = "idle", .limits = {.tenant = HundredRegions().uid_limits}});
  older.retirement.Begin(IgnoreGone);
  older.retirement.Tick();
  older.retirement.Cancel();
  EXPECT_TRUE(TakeRegions(owner, 100).ok());
  EXPECT_TRUE(idle.tenant->ledger()->Take(Resource::kRegions, 100).ok());
  idle.tenant->ledger()->Give(Resource::kRegions, 100);
  EXPECT_TRUE(older.retirement.Tick().wanted.empty());
  EXPECT_EQ(RegionsOf(older.retirement.Begin(IgnoreGone).held), 50u) << "and it can begin again";
}

TEST(Retirement, GrantsAreChangedByTheNewerGeneration) {
  Generation older;
  const IssuedGrant issued = *older.tenants.CreateGrant({.name = "a"});
  older.retirement.Begin(IgnoreGone);
  const auto handed_over = FailsWith(ErrorReason::DAEMON_HANDED_OVER);
  EXPECT_THAT(older.tenants.CreateGrant({.name = "b"}).status(), handed_over);
  EXPECT_THAT(older.tenants.RevokeGrant(issued.id).status(), handed_over);
  EXPECT_THAT(older.tenants.BindGrant(issued.id, kPod, CallerNumbered(1)).status(), handed_over);
  older.retirement.Cancel();
  EXPECT_TRUE(older.tenants.RevokeGrant(issued.id).ok());
}

TEST(Retirement, SessionsEndThatTheNewerGenerationsGrantRefuses) {
  Generation older;
  const IssuedGrant bound = *older.tenants.CreateGrant({.name = "a"});
  const IssuedGrant revoked = *older.tenants.CreateGrant({.name = "b"});
  Caller in_pod = CallerNumbered(1);
  in_pod.container.pod_uid = kPod;
  const auto inside = older.registry.Open(in_pod, "", bound.secret);
  const auto outside = older.registry.Open(CallerNumbered(2), "", bound.secret);
  const auto other = older.registry.Open(CallerNumbered(3), "", revoked.secret);
  older.retirement.Begin(IgnoreGone);
  older.retirement.Narrow(bound.id, kPod);
  EXPECT_TRUE((*outside)->ending());
  older.retirement.Narrow(revoked.id, "");
  EXPECT_TRUE((*other)->ending());
  EXPECT_FALSE((*inside)->ending());
}

}  // namespace
}  // namespace rnicd::core
