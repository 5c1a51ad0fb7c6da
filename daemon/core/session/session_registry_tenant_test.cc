// Sessions whose tenant, grant or operator ends them.

#include <thread>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

using std::chrono::seconds;

// Only uid 1000 is admitted without a grant.
WorldOptions OneUidOnly() {
  WorldOptions options;
  options.policy =
      Policy{.tenants = {{.name = "one", .matches = {{.uid = 1000}}, .sharing = Sharing::kOne, .limits = {}}},
             .default_tenant = "",
             .roles = {}};
  return options;
}

class SessionTenantTest : public ::testing::Test {
 protected:
  explicit SessionTenantTest(const WorldOptions& options = OneUidOnly()) : world_(options) {}

  IssuedGrant Grant(const GrantTerms& terms) {
    auto issued = world_.tenants.CreateGrant(terms);
    EXPECT_TRUE(issued.ok()) << issued.status();
    return issued.value_or(IssuedGrant{});
  }
  absl::StatusOr<std::shared_ptr<Session>> Open(uint64_t number, uint32_t uid, std::string_view grant = {}) {
    return world_.registry.Open(CallerNumbered(number, uid), "", grant);
  }
  // The effect of an operator's RevokeGrant.
  uint64_t Revoke(GrantId id) {
    const auto tenant = world_.tenants.RevokeGrant(id);
    EXPECT_TRUE(tenant.ok()) << tenant.status();
    return tenant.ok() ? world_.registry.EndRefusedBy(**tenant, EndCause::kGrantRevoked) : 0;
  }
  absl::StatusOr<std::shared_ptr<Session>> OpenInPod(uint64_t number, const std::string& pod_uid,
                                                     std::string_view grant) {
    Caller caller = CallerNumbered(number, 2000);
    caller.container.pod_uid = pod_uid;
    return world_.registry.Open(caller, "", grant);
  }
  // The effect of BindGrant by a device plugin that is in a pod.
  uint64_t Bind(GrantId id) {
    Caller plugin = CallerNumbered(9, 0);
    plugin.container.pod_uid = other_pod_;
    const auto tenant = world_.tenants.BindGrant(id, kPod, plugin);
    EXPECT_TRUE(tenant.ok()) << tenant.status();
    return tenant.ok() ? world_.registry.EndRefusedBy(**tenant, EndCause::kGrantRevoked) : 0;
  }
  std::vector<RecordedDecision> Recorded(const std::string& what) const {
    std::vector<RecordedDecision> recorded;
    for (const RecordedDecision& decision : world_.observer.counts().decisions) {
      if (decision.what == what) {
        recorded.push_back(decision);
      }
    }
    return recorded;
  }

  World world_;
  const std::string other_pod_ = "0123456789abcdef0123456789abcdef";
};

TEST_F(SessionTenantTest, ASessionBelongsToTheTenantOfItsCallerOrOfItsGrant) {
  const IssuedGrant grant = Grant({.name = "g"});
  EXPECT_EQ((*Open(1, 1000))->tenant().name(), "one");
  EXPECT_EQ((*Open(2, 2000, grant.secret))->tenant().name(), "grant/g");
  EXPECT_EQ((*Open(3, 1000, grant.secret))->tenant().name(), "grant/g");
}

TEST_F(SessionTenantTest, ACallerWithoutATenantOpensNoSession) {
  EXPECT_THAT(Open(1, 2000).status(), FailsWith(ErrorReason::TENANT_REFUSED));
  EXPECT_THAT(Open(1, 1000, "rnicd-grant-").status(), FailsAt(ErrorReason::GRANT_REFUSED, "grant"));
  EXPECT_THAT(Open(1, 2000, Grant({.name = "g", .pod_uid = "p"}).secret).status(),
              FailsAt(ErrorReason::GRANT_REFUSED, "grant"));
  EXPECT_EQ(world_.Held(), "");
  EXPECT_TRUE(world_.registry.List().empty());
  EXPECT_EQ(world_.observer.counts().opened, 0u);
}

TEST_F(SessionTenantTest, AGrantsSessionsShareTheGrantsLimits) {
  GrantTerms terms{.name = "g"};
  terms.limits.tenant[Resource::kSessions] = 2;
  const IssuedGrant grant = Grant(terms);
  const auto first = Open(1, 1, grant.secret);
  ASSERT_TRUE(first.ok() && Open(2, 2, grant.secret).ok());
  EXPECT_THAT(Open(3, 3, grant.secret).status(), FailsWith(ErrorReason::QUOTA_SESSIONS));
  world_.End(*first);
  EXPECT_TRUE(Open(3, 3, grant.secret).ok());
}

TEST_F(SessionTenantTest, AnEvictedSessionEnds) {
  Owner owner(world_, 1);
  ASSERT_TRUE(owner.Register(owner.Region(), owner.Memory(1), kPage).ok());
  const Owner other(world_, 2);
  EXPECT_EQ(world_.registry.Evict(owner.session->id()).value(), owner.session);
  EXPECT_TRUE(Eventually([&] { return owner.session->ended(); }));
  EXPECT_EQ(world_.observer.counts().cause, EndCause::kEvicted);
  EXPECT_EQ(std::get<SessionEnding>(owner.session->events().Pop()->body).cause, EndCause::kEvicted);
  EXPECT_FALSE(other.session->ending());
  EXPECT_TRUE(Eventually([&] { return world_.registry.List().size() == 1; }));
  EXPECT_EQ(world_.Held(), "sessions=1 ");
}

TEST_F(SessionTenantTest, WhatIsNoSessionIsNotEvicted) {
  const auto session = Open(1, 1000);
  for (const SessionId id : {SessionId{}, SessionId{(*session)->id().value + 1}}) {
    EXPECT_THAT(world_.registry.Evict(id).status(), FailsAt(ErrorReason::SESSION_NOT_FOUND, "session_id"));
  }
  const SessionId id = (*session)->id();
  world_.End(*session);
  EXPECT_THAT(world_.registry.Evict(id).status(), FailsWith(ErrorReason::SESSION_NOT_FOUND));
}

TEST_F(SessionTenantTest, ARevocationEndsTheSessionsThatTheGrantCarriesAndNoOthers) {
  const IssuedGrant grant = Grant({.name = "g"});
  const IssuedGrant other_grant = Grant({.name = "h"});
  Owner owner(*Open(1, 1000, grant.secret));
  const auto registered = owner.Register(owner.Region(), owner.Memory(1), kPage);
  ASSERT_TRUE(registered.ok());
  const auto second = Open(2, 2000, grant.secret);
  const auto by_policy = Open(3, 1000);
  const auto by_other_grant = Open(4, 2000, other_grant.secret);
  EXPECT_EQ(Revoke(grant.id), 2u);
  EXPECT_TRUE(Eventually([&] { return owner.session->ended() && (*second)->ended(); }));
  EXPECT_EQ(world_.soft.live_regions(), 0u) << "its tokens are dead";
  EXPECT_FALSE((*by_policy)->ending());
  EXPECT_FALSE((*by_other_grant)->ending());
  EXPECT_THAT(Open(5, 1000, grant.secret).status(), FailsWith(ErrorReason::GRANT_REFUSED));
  EXPECT_EQ(Recorded("session.end").size(), 2u);
  for (const RecordedDecision& recorded : Recorded("session.end")) {
    EXPECT_EQ(recorded.tenant, "grant/g");
    EXPECT_EQ(recorded.note, "grant_revoked");
    EXPECT_TRUE(recorded.process.has_value());
    EXPECT_NE(recorded.session, SessionId{});
  }
}

// Others have had the secret before its grant was bound to a pod.
TEST_F(SessionTenantTest, SessionsFromOutsideThePodEndWhenTheirGrantIsBound) {
  const IssuedGrant grant = Grant({.name = "g"});
  const auto in_pod = OpenInPod(1, kPod, grant.secret);
  const auto in_another = OpenInPod(2, other_pod_, grant.secret);
  const auto on_the_node = OpenInPod(3, "", grant.secret);
  const auto by_policy = Open(4, 1000);
  EXPECT_EQ(Bind(grant.id), 2U);
  EXPECT_TRUE(Eventually([&] { return (*in_another)->ended() && (*on_the_node)->ended(); }));
  EXPECT_FALSE((*in_pod)->ending());
  EXPECT_FALSE((*by_policy)->ending());
  EXPECT_THAT(OpenInPod(5, other_pod_, grant.secret).status(), FailsAt(ErrorReason::GRANT_REFUSED, "grant"));
  EXPECT_THAT(OpenInPod(6, "", grant.secret).status(), FailsAt(ErrorReason::GRANT_REFUSED, "grant"));
  EXPECT_TRUE(OpenInPod(7, kPod, grant.secret).ok());
  ASSERT_EQ(Recorded("session.end").size(), 2U);
  EXPECT_EQ(Recorded("session.end").front().note, "grant_revoked");
}

TEST_F(SessionTenantTest, SessionsEndWithTheTimeOfTheirGrant) {
  const IssuedGrant grant = Grant({.name = "g", .lifetime = seconds(5)});
  const auto session = Open(1, 1000, grant.secret);
  const auto by_policy = Open(2, 1000);
  world_.clock.Advance(seconds(4));
  world_.registry.EndExpired();
  EXPECT_FALSE((*session)->ending());
  EXPECT_TRUE(Recorded("grant.expire").empty());
  world_.clock.Advance(seconds(1));
  EXPECT_THAT(Open(3, 1000, grant.secret).status(), FailsWith(ErrorReason::GRANT_REFUSED));
  world_.registry.EndExpired();
  EXPECT_TRUE(Eventually([&] { return (*session)->ended(); }));
  EXPECT_EQ(world_.observer.counts().cause, EndCause::kGrantExpired);
  EXPECT_FALSE((*by_policy)->ending());
  world_.registry.EndExpired();
  ASSERT_EQ(Recorded("grant.expire").size(), 1u);
  EXPECT_EQ(Recorded("grant.expire").front().tenant, "grant/g");
  EXPECT_FALSE(Recorded("grant.expire").front().process.has_value()) << "the daemon itself decided";
}

TEST_F(SessionTenantTest, ADrainedNodeIsOpenAgainWhenTheDrainIsTakenBack) {
  const auto before = Open(1, 1000);
  world_.draining = true;
  EXPECT_THAT(Open(2, 1000).status(), FailsWith(ErrorReason::DAEMON_DRAINING));
  EXPECT_FALSE((*before)->ending()) << "what is there goes on";
  world_.draining = false;
  EXPECT_TRUE(Open(2, 1000).ok());
}

TEST_F(SessionTenantTest, ANodeThatStopsIsNotOpenedAgainByAnOperator) {
  world_.registry.Drain(EndCause::kDaemonStopping);
  world_.draining = false;
  EXPECT_THAT(Open(1, 1000).status(), FailsWith(ErrorReason::DAEMON_DRAINING));
}

// Opens sessions until one is refused for another reason than their number; in that case it ends one of them. Returns
// the sessions it did not end.
std::vector<std::shared_ptr<Session>> OpenUntilRefused(World& world, uint64_t number, std::string_view grant,
                                                       std::atomic<int>& opened) {
  std::vector<std::shared_ptr<Session>> mine;
  while (true) {
    const auto session = world.registry.Open(CallerNumbered(number), "", grant);
    if (session.ok()) {
      mine.push_back(*session);
      ++opened;
    } else if (!FailedWith(session.status(), ErrorReason::QUOTA_SESSIONS)) {
      return mine;
    } else if (!mine.empty()) {
      world.registry.DropConnection(mine.back());
      mine.pop_back();
    }
  }
}

constexpr uint64_t kMostSessions = 50;
constexpr uint64_t kOpeners = 8;

GrantTerms ForARace() {
  GrantTerms terms{.name = "g"};
  terms.limits.tenant[Resource::kSessions] = kMostSessions;
  return terms;
}

// Threads open sessions with a grant until they are refused, and `refuse` is called when more than `others` are open.
// In every order of the race, every session is ended.
void RaceOpeners(World& world, const std::string& secret, int others, const std::function<void()>& refuse) {
  std::atomic<int> opened{0};
  std::vector<std::thread> threads;
  for (uint64_t number = 1; number <= kOpeners; ++number) {
    threads.emplace_back([&, number] {
      for (const auto& session : OpenUntilRefused(world, number, secret, opened)) {
        EXPECT_TRUE(Eventually([&] { return session->ending(); }));
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return opened > others; }));
  refuse();
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_TRUE(world.registry.WaitUntilEmpty(TestDeadline()));
  ASSERT_EQ(world.Held(), "");
}

TEST_F(SessionTenantTest, NoSessionSurvivesTheRevocationOfItsGrant) {
  for (int round = 0; round < 10; ++round) {
    const IssuedGrant grant = Grant(ForARace());
    ASSERT_NO_FATAL_FAILURE(RaceOpeners(world_, grant.secret, round, [&] { Revoke(grant.id); }));
  }
}

TEST_F(SessionTenantTest, NoSessionFromOutsideThePodSurvivesTheBindingOfItsGrant) {
  for (int round = 0; round < 10; ++round) {
    const IssuedGrant grant = Grant(ForARace());
    ASSERT_NO_FATAL_FAILURE(RaceOpeners(world_, grant.secret, round, [&] { Bind(grant.id); }));
    Revoke(grant.id);
  }
}

TEST_F(SessionTenantTest, NoSessionSurvivesTheExpiryOfItsGrant) {
  for (int round = 0; round < 10; ++round) {
    GrantTerms terms = ForARace();
    terms.lifetime = seconds(1);
    const IssuedGrant grant = Grant(terms);
    std::atomic<int> opened{0};
    std::vector<std::thread> threads;
    for (uint64_t number = 1; number <= kOpeners; ++number) {
      threads.emplace_back([&, number] { OpenUntilRefused(world_, number, grant.secret, opened); });
    }
    EXPECT_TRUE(Eventually([&] { return opened > round; }));
    world_.clock.Advance(seconds(1));
    world_.registry.EndExpired();
    for (std::thread& thread : threads) {
      thread.join();
    }
    ASSERT_TRUE(world_.registry.WaitUntilEmpty(TestDeadline()));
    ASSERT_EQ(world_.Held(), "");
  }
}

TEST(SessionRegistryRace, NoSessionSurvivesTheStop) {
  WorldOptions options;
  options.uid_limits[Resource::kSessions] = kMostSessions;
  for (int round = 0; round < 5; ++round) {
    World world(options);
    std::atomic<int> opened{0};
    std::vector<std::thread> threads;
    for (uint64_t number = 1; number <= kOpeners; ++number) {
      threads.emplace_back([&, number] { OpenUntilRefused(world, number, "", opened); });
    }
    EXPECT_TRUE(Eventually([&] { return opened > round; }));
    world.registry.Drain(EndCause::kDaemonStopping);
    for (std::thread& thread : threads) {
      thread.join();
    }
    ASSERT_TRUE(world.registry.WaitUntilEmpty(TestDeadline()));
    EXPECT_EQ(world.Held(), "");
  }
}

}  // namespace
}  // namespace rnicd::core
