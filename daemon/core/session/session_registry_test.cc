#include "daemon/core/session/session_registry.h"

#include <algorithm>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

TEST(SessionRegistry, OpenedSessionsAreListedWithTheirOwners) {
  World world;
  const auto first = world.registry.Open(CallerNumbered(1), "one");
  const auto second = world.registry.Open(CallerNumbered(2), "two");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE((*first)->id(), (*second)->id());
  const auto listed = world.registry.List();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_LT(listed[0].session->id(), listed[1].session->id());
  EXPECT_EQ((*second)->label(), "two");
  EXPECT_EQ((*second)->owner().pid, 2);
  EXPECT_EQ(world.observer.counts().opened, 2u);
}

TEST(SessionRegistry, ALabelMustBeShortAndPrintable) {
  World world;
  EXPECT_TRUE(world.registry.Open(CallerNumbered(1), std::string(64, 'x')).ok());
  for (const std::string& label :
       {std::string(65, 'x'), std::string("a\nb"), std::string("\x7f"), std::string("\xff"), std::string("a\0b", 3)}) {
    EXPECT_THAT(world.registry.Open(CallerNumbered(1), label).status(),
                FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "label"));
  }
  EXPECT_EQ(world.Held(), "sessions=1 ");
}

TEST(SessionRegistry, OnlyTheSameProcessMayJoin) {
  World world;
  const auto session = world.registry.Open(CallerNumbered(1), "");
  EXPECT_EQ(world.registry.Join((*session)->id(), CallerNumbered(1)).value(), *session);
  const auto absent = FailsAt(ErrorReason::SESSION_NOT_FOUND, "session_id");
  EXPECT_THAT(world.registry.Join((*session)->id(), CallerNumbered(2)).status(), absent);
  EXPECT_THAT(world.registry.Join(SessionId{(*session)->id().value + 1}, CallerNumbered(1)).status(), absent);
  EXPECT_THAT(world.registry.Join(SessionId{}, CallerNumbered(1)).status(), absent);
}

TEST(SessionRegistry, ASessionEndsWithItsLastConnection) {
  World world;
  const auto session = world.registry.Open(CallerNumbered(1), "");
  ASSERT_TRUE(world.registry.Join((*session)->id(), CallerNumbered(1)).ok());
  EXPECT_EQ(world.registry.List().front().connections, 2u);
  world.registry.DropConnection(*session);
  EXPECT_FALSE((*session)->ending());
  world.registry.DropConnection(*session);
  EXPECT_TRUE(world.registry.WaitUntilEmpty(TestDeadline()));
  world.registry.DropConnection(*session);
  EXPECT_EQ(world.Held(), "");
}

TEST(SessionRegistry, AnEndedSessionCannotBeJoined) {
  World world;
  const auto session = world.registry.Open(CallerNumbered(1), "");
  world.End(*session);
  EXPECT_THAT(world.registry.Join((*session)->id(), CallerNumbered(1)).status(),
              FailsWith(ErrorReason::SESSION_NOT_FOUND));
}

TEST(SessionRegistry, TheLimitOfOneUidIsItsOwn) {
  WorldOptions options;
  options.uid_limits[Resource::kSessions] = 2;
  options.limits.node[Resource::kSessions] = 3;
  World world(options);
  const auto first = world.registry.Open(CallerNumbered(1, 1000), "");
  ASSERT_TRUE(world.registry.Open(CallerNumbered(2, 1000), "").ok());
  const absl::Status refused = world.registry.Open(CallerNumbered(3, 1000), "").status();
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_SESSIONS));
  EXPECT_EQ(ErrorInfoOf(refused).limit, 2u);
  EXPECT_TRUE(world.registry.Open(CallerNumbered(4, 2000), "").ok());
  EXPECT_EQ(ErrorInfoOf(world.registry.Open(CallerNumbered(5, 3000), "").status()).limit, 3u);
  world.End(*first);
  EXPECT_TRUE(world.registry.Open(CallerNumbered(6, 1000), "").ok()) << "an ended session makes room";
}

TEST(SessionRegistry, SessionsOfOneUidShareItsLedger) {
  WorldOptions options;
  options.uid_limits[Resource::kMemoryBytes] = 2 * kPage;
  World world(options);
  Owner first(world, 1, 1000);
  Owner second(world, 2, 1000);
  Owner other(world, 3, 2000);
  EXPECT_TRUE(first.session->Begin()->memory().Import(kPage).ok());
  EXPECT_THAT(second.session->Begin()->memory().Import(2 * kPage).status(), FailsWith(ErrorReason::QUOTA_MEMORY_BYTES));
  EXPECT_TRUE(other.session->Begin()->memory().Import(2 * kPage).ok());
}

TEST(SessionRegistry, EverySessionOfADeadProcessEnds) {
  World world;
  const auto first = world.registry.Open(CallerNumbered(1), "");
  const auto second = world.registry.Open(CallerNumbered(1), "");
  const auto other = world.registry.Open(CallerNumbered(2), "");
  world.registry.EndAllOf(CallerNumbered(1).process, EndCause::kProcessExited);
  EXPECT_TRUE((*first)->ending());
  EXPECT_TRUE((*second)->ending());
  EXPECT_FALSE((*other)->ending());
  EXPECT_TRUE(Eventually([&] { return world.registry.List().size() == 1; }));
}

TEST(SessionRegistry, ADrainingNodeTakesNoSessionsAndEndsTheOpenOnes) {
  World world;
  Owner owner(world);
  world.registry.Drain(EndCause::kDaemonStopping);
  EXPECT_THAT(world.registry.Open(CallerNumbered(2), "").status(), FailsWith(ErrorReason::DAEMON_DRAINING));
  EXPECT_TRUE(world.registry.WaitUntilEmpty(TestDeadline()));
  EXPECT_EQ(world.observer.counts().cause, EndCause::kDaemonStopping);
  EXPECT_EQ(world.Held(), "");
}

TEST(SessionRegistry, TheDrainWaitsNoLongerThanItsDeadline) {
  World world;
  Owner owner(world);
  const auto guard = owner.session->Begin();
  world.registry.Drain(EndCause::kDaemonStopping);
  EXPECT_FALSE(world.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + std::chrono::milliseconds(20)));
}

TEST(SessionRegistry, AnEmptyRegistryIsEmptyAtOnce) {
  World world;
  EXPECT_TRUE(world.registry.WaitUntilEmpty(std::chrono::steady_clock::now()));
}

}  // namespace
}  // namespace rnicd::core
