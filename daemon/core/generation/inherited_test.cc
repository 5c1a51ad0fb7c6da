#include "daemon/core/generation/inherited.h"

#include "daemon/core/generation/generation_fixture_test.h"

namespace rnicd::core {
namespace {

using std::chrono::seconds;

Caller InThePod() {
  Caller caller = CallerNumbered(5, 2000);
  caller.container.pod_uid = kPod;
  return caller;
}

std::string TenantNameOf(Generation& generation, const Caller& caller, std::string_view grant = {}) {
  const auto tenant = generation.tenants.TenantOf(caller, grant);
  return tenant.ok() ? (*tenant)->name() : std::string(RowOf(ErrorInfoOf(tenant.status()).reason).name);
}

class InheritedTest : public ::testing::Test {
 protected:
  static WorldOptions TwoSessions() {
    WorldOptions options;
    options.uid_limits[Resource::kSessions] = 2;
    return options;
  }
  void HandOver() {
    const absl::Status taken = newer_.inherited.Take(older_.retirement.Begin(IgnoreGone));
    ASSERT_TRUE(taken.ok()) << taken;
  }
  std::shared_ptr<Tenant> GrantedTenant(GrantId id) const {
    for (const GrantView& view : newer_.tenants.Grants()) {
      if (view.id == id) {
        return view.tenant;
      }
    }
    return nullptr;
  }

  Generation older_{TwoSessions()};
  Generation newer_{TwoSessions()};
};

TEST_F(InheritedTest, AGrantKeepsItsIdAndItsSecret) {
  const IssuedGrant issued = *older_.tenants.CreateGrant({.name = "a"});
  HandOver();
  EXPECT_EQ(TenantNameOf(newer_, CallerNumbered(1), issued.secret), "grant/a");
  EXPECT_EQ((*newer_.tenants.TenantOf(CallerNumbered(1), issued.secret))->grant(), issued.id);
  std::string wrong = issued.secret;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  EXPECT_EQ(TenantNameOf(newer_, CallerNumbered(1), wrong), "GRANT_REFUSED");
  const GrantTerms renewal{.name = "a", .renewal = GrantRenewal{.id = issued.id, .digest = SecretDigest::Of("x")}};
  EXPECT_THAT(newer_.tenants.CreateGrant(renewal).status(), FailsWith(ErrorReason::GRANT_NAME_TAKEN));
  ASSERT_TRUE(newer_.tenants.RevokeGrant(issued.id).ok());
  EXPECT_TRUE(newer_.tenants.CreateGrant(renewal).ok());
}

TEST_F(InheritedTest, AGrantWithADoorKeepsIt) {
  const IssuedGrant issued = *older_.tenants.CreateGrant({.name = "a", .door = true});
  HandOver();
  Caller caller = CallerNumbered(1);
  caller.door = GrantedTenant(issued.id);
  ASSERT_NE(caller.door, nullptr);
  EXPECT_TRUE(caller.door->door().exists());
  EXPECT_EQ(TenantNameOf(newer_, caller), "grant/a");
}

TEST_F(InheritedTest, AGrantThatWasRenewedBeforeKeepsItsSecret) {
  const GrantTerms renewal{.name = "a", .renewal = GrantRenewal{.id = {9}, .digest = SecretDigest::Of("x")}};
  ASSERT_TRUE(older_.tenants.CreateGrant(renewal).ok());
  const Inheritance inheritance = older_.retirement.Begin(IgnoreGone);
  ASSERT_EQ(inheritance.grants.size(), 1u);
  EXPECT_EQ(inheritance.grants.front().renewal->id, GrantId{9});
  EXPECT_EQ(inheritance.grants.front().renewal->digest->bytes(), SecretDigest::Of("x").bytes());
}

TEST_F(InheritedTest, AGrantKeepsItsAgeAndTheRestOfItsTime) {
  ASSERT_TRUE(older_.tenants.CreateGrant({.name = "long", .lifetime = seconds(10)}).ok());
  ASSERT_TRUE(older_.tenants.CreateGrant({.name = "short", .lifetime = seconds(4)}).ok());
  ASSERT_TRUE(older_.tenants.CreateGrant({.name = "forever"}).ok());
  older_.clock.Advance(seconds(4));
  newer_.clock.Advance(seconds(100));
  HandOver();
  ASSERT_EQ(newer_.tenants.Grants().size(), 2u) << "one is over";
  for (const GrantView& view : newer_.tenants.Grants()) {
    EXPECT_EQ(newer_.clock.Now() - view.created, seconds(4)) << view.tenant->name();
  }
  newer_.clock.Advance(seconds(5));
  EXPECT_TRUE(newer_.tenants.Sweep().empty());
  newer_.clock.Advance(seconds(1));
  const auto over = newer_.tenants.Sweep();
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over.front()->name(), "grant/long");
}

TEST_F(InheritedTest, AGrantKeepsItsPodItsDevicesAndItsLimits) {
  const auto devices = std::make_shared<DeviceSet>(DeviceSet{.resource = "rnicd.io/memory-64mi", .ids = {"m-1"}});
  GrantTerms terms{.name = "a", .devices = devices};
  terms.limits.tenant[Resource::kRegions] = 7;
  terms.limits.session[Resource::kRegions] = 3;
  const IssuedGrant issued = *older_.tenants.CreateGrant(terms);
  older_.tenants.SetPods({{.uid = kPod,
                           .namespace_name = "ml",
                           .name = "train-0",
                           .containers = {{.name = "main", .devices = {*devices}}}}});
  ASSERT_EQ((*older_.tenants.BindGrant(issued.id, kPod, InThePod()))->pod_uid(), kPod);
  HandOver();
  EXPECT_EQ(TenantNameOf(newer_, CallerNumbered(1), issued.secret), "GRANT_REFUSED");
  EXPECT_EQ(TenantNameOf(newer_, InThePod(), issued.secret), "grant/a");
  const std::shared_ptr<Tenant> tenant = GrantedTenant(issued.id);
  EXPECT_EQ(tenant->workload()->name.pod, "train-0");
  EXPECT_EQ(tenant->ledger()->limit(Resource::kRegions), 7u);
  EXPECT_EQ(tenant->limits().session[Resource::kRegions], 3u);
}

TEST_F(InheritedTest, WhatAGrantHoldsCountsForTheSameGrant) {
  GrantTerms terms{.name = "a"};
  terms.limits.tenant[Resource::kSessions] = 2;
  const IssuedGrant issued = *older_.tenants.CreateGrant(terms);
  const auto session = older_.registry.Open(CallerNumbered(1), "", issued.secret);
  ASSERT_TRUE(session.ok());
  HandOver();
  EXPECT_EQ(GrantedTenant(issued.id)->ledger()->used(Resource::kSessions), 1u);
  EXPECT_TRUE(newer_.registry.Open(CallerNumbered(2), "", issued.secret).ok());
  ExpectFigures(newer_.registry.Open(CallerNumbered(3), "", issued.secret).status(), ErrorReason::QUOTA_SESSIONS, 2, 2,
                1);
}

TEST_F(InheritedTest, ATenantOfThePolicyHasItsForeignUseBeforeItsFirstSession) {
  const Owner owner(older_, 1, 1000);
  HandOver();
  ASSERT_EQ(newer_.tenants.Tenants().size(), 1u);
  newer_.tenants.Sweep();
  const auto tenant = newer_.tenants.TenantOf(CallerNumbered(2, 1000), "");
  EXPECT_EQ((*tenant)->ledger()->used(Resource::kSessions), 1u);
  EXPECT_TRUE(newer_.registry.Open(CallerNumbered(2, 1000), "").ok());
  EXPECT_THAT(newer_.registry.Open(CallerNumbered(3, 1000), "").status(), FailsWith(ErrorReason::QUOTA_SESSIONS));
  EXPECT_TRUE(newer_.registry.Open(CallerNumbered(4, 2000), "").ok()) << "another tenant";
}

TEST_F(InheritedTest, ATenantWhoseRuleThePolicyLacksGetsItsLimitsWhenItComesBack) {
  const Owner owner(older_, 1, 1000);
  newer_.tenants.SetPolicy({});
  HandOver();
  EXPECT_EQ(TenantNameOf(newer_, CallerNumbered(1, 1000)), "TENANT_REFUSED");
  newer_.tenants.SetPolicy(OneTenantForEachUid(TwoSessions().uid_limits));
  EXPECT_EQ((*newer_.tenants.TenantOf(CallerNumbered(1, 1000), ""))->ledger()->used(Resource::kSessions), 1u);
  EXPECT_EQ((*newer_.tenants.TenantOf(CallerNumbered(1, 1000), ""))->ledger()->limit(Resource::kSessions), 2u);
}

TEST_F(InheritedTest, DropGivesEverythingBack) {
  const IssuedGrant issued = *older_.tenants.CreateGrant({.name = "a"});
  const auto granted = older_.registry.Open(CallerNumbered(2), "", issued.secret);
  const Owner owner(older_, 1, 1000);
  HandOver();
  EXPECT_EQ(newer_.Held(), "sessions=2 ");
  EXPECT_TRUE(newer_.inherited.Owns(CallerNumbered(1).process));
  newer_.inherited.Drop();
  newer_.inherited.Drop();
  EXPECT_EQ(newer_.Held(), "");
  EXPECT_FALSE(newer_.inherited.Owns(CallerNumbered(1).process));
  newer_.tenants.Sweep();
  ASSERT_EQ(newer_.tenants.Tenants().size(), 1u);
  EXPECT_EQ(newer_.tenants.Tenants().front()->name(), "grant/a") << "it is of this generation now";
  EXPECT_TRUE(newer_.tenants.Tenants().front()->ledger()->empty());
}

TEST_F(InheritedTest, AProcessIsOwnedUntilItIsGone) {
  const Owner owner(older_, 1);
  HandOver();
  EXPECT_TRUE(newer_.inherited.Owns(CallerNumbered(1).process));
  EXPECT_FALSE(newer_.inherited.Owns(CallerNumbered(2).process));
  newer_.inherited.Gone(CallerNumbered(1).process);
  EXPECT_FALSE(newer_.inherited.Owns(CallerNumbered(1).process));
}

TEST_F(InheritedTest, AGrantThatHasEndedCountsForTheNodeOnly) {
  const IssuedGrant issued = *older_.tenants.CreateGrant({.name = "a"});
  const auto session = older_.registry.Open(CallerNumbered(1), "", issued.secret);
  ASSERT_TRUE(older_.tenants.RevokeGrant(issued.id).ok());
  const IssuedGrant next = *older_.tenants.CreateGrant({.name = "a"});
  HandOver();
  EXPECT_TRUE(GrantedTenant(next.id)->ledger()->empty());
  EXPECT_EQ(newer_.Held(), "sessions=1 ");
  HeldUse wanted{.tenant = "grant/a", .grant = issued.id};
  wanted.held.fill(5);
  EXPECT_EQ(newer_.inherited.Grow(wanted).held, HeldUse{}.held);
}

TEST_F(InheritedTest, NumbersThatWouldWrapAreCountedAsFarAsTheyFit) {
  Inheritance inheritance;
  inheritance.held.resize(2);
  inheritance.held[1].tenant = "uid/uid=1000";
  for (HeldUse& use : inheritance.held) {
    use.held.fill(UINT64_MAX);
  }
  Inherited another(newer_.node);
  ASSERT_TRUE(newer_.inherited.Take(inheritance).ok());
  ASSERT_TRUE(newer_.inherited.Take(inheritance).ok());
  ASSERT_TRUE(another.Take(inheritance).ok());
  EXPECT_EQ(newer_.ledger->used(Resource::kRegions), UINT64_MAX);
  another.Drop();
  newer_.inherited.Drop();
  EXPECT_EQ(newer_.Held(), "");
}

TEST_F(InheritedTest, AGrantWithImpossibleTimesIsRefused) {
  Inheritance inheritance;
  inheritance.grants.push_back({.name = "a", .renewal = GrantRenewal{.id = {9}, .digest = SecretDigest::Of("x")}});
  inheritance.grants[0].lifetime = std::chrono::milliseconds::max();
  EXPECT_THAT(newer_.inherited.Take(inheritance), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "grants"));
  inheritance.grants[0].lifetime = seconds(0);
  inheritance.grants[0].renewal->age = std::chrono::milliseconds::min();
  EXPECT_THAT(newer_.inherited.Take(inheritance), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "grants"));
  inheritance.grants[0].renewal.reset();
  EXPECT_THAT(newer_.inherited.Take(inheritance), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "grants"));
}

// The oldest one is still there when the second hands over.
TEST_F(InheritedTest, AThirdGenerationCountsWhatIsLeftOfBoth) {
  WorldOptions options;
  options.uid_limits[Resource::kSessions] = 3;
  Generation oldest(options);
  Generation middle(options);
  Generation newest(options);
  const Owner first(oldest, 1);
  ASSERT_TRUE(middle.inherited.Take(oldest.retirement.Begin(IgnoreGone)).ok());
  const Owner second(middle, 2);
  Inherited older(newest.node);
  const Inheritance of_middle = middle.retirement.Begin(IgnoreGone);
  EXPECT_EQ(of_middle.processes, std::vector{CallerNumbered(2).process});
  ASSERT_TRUE(newest.inherited.Take(of_middle).ok());
  ASSERT_TRUE(older.Take(middle.inherited.Left()).ok());
  middle.inherited.Drop();
  EXPECT_TRUE(older.Owns(CallerNumbered(1).process));
  EXPECT_TRUE(newest.inherited.Owns(CallerNumbered(2).process));
  EXPECT_EQ(newest.ledger->used(Resource::kSessions), 2u);
  EXPECT_TRUE(newest.registry.Open(CallerNumbered(3), "").ok());
  EXPECT_THAT(newest.registry.Open(CallerNumbered(4), "").status(), FailsWith(ErrorReason::QUOTA_SESSIONS));
}

}  // namespace
}  // namespace rnicd::core
