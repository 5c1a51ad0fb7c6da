// Property 8: every limit is refused with its reason and its figures, none is ever passed, and a page is paid once.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/trust_fixture.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

void ExpectFigures(const CallOutcome& refused, ErrorReason reason, uint64_t limit, uint64_t used, uint64_t requested,
                   Where where = Where::current()) {
  const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "these figures");
  ExpectRefused(refused, reason);
  EXPECT_EQ(refused.detail.limit(), limit);
  EXPECT_EQ(refused.detail.used(), used);
  EXPECT_EQ(refused.detail.requested(), requested);
}

class Quotas : public DaemonTest {
 protected:
  Quotas() : DaemonTest({LimitsFlag("limits { sessions: 3 }"), "--max_pinned_bytes=61440"}) {}
};

TEST_F(Quotas, PinnedBytesOfTheNode) {
  TestSession first(daemon());
  TestSession second(daemon());
  first.RegisterWhole(first.CreateMr(), first.SealedMemory(10 * kPage), 10 * kPage);
  const uint64_t memory = second.SealedMemory(6 * kPage);
  const uint64_t mr = second.CreateMr();
  ExpectFigures(second.Register(RegisterRequest(mr, {MdlEntry(memory, 0, 6 * kPage, kBase)}, 6 * kPage)),
                ErrorReason::QUOTA_PINNED_BYTES, 61440, 10 * kPage, 6 * kPage);
  // A refusal by the node leaves nothing charged to the session.
  EXPECT_EQ(second.Use("pinned_bytes").used(), 0u);
  second.RegisterWhole(mr, memory, 5 * kPage);
}

TEST_F(Quotas, SessionsOfAUid) {
  TestSession first(daemon());
  TestSession second(daemon());
  {
    TestSession third(daemon());
    RawClient fourth(daemon().rpc_socket());
    ExpectFigures(fourth.Call(&SessionStub::OpenSession, {}), ErrorReason::QUOTA_SESSIONS, 3, 3, 1);
    ExpectOk(third.CloseSession());
    // The same connection may try again.
    ExpectOk(fourth.Call(&SessionStub::OpenSession, {}));
  }
}

// One session's limits are no other's.
TEST_F(Quotas, AreOfEachSession) {
  TestSession first(daemon());
  TestSession second(daemon());
  CreateCq(first, 100);
  CreateCq(second, 100);
  CreateMw(first);
  CreateMw(first);
  CreateMw(second);
  EXPECT_EQ(Used(AdminStatus(daemon()), "cq_entries"), 200u);
  EXPECT_EQ(Used(AdminStatus(daemon()), "windows"), 3u);
}

class PendingQuota : public DaemonTest {
 protected:
  PendingQuota()
      : DaemonTest({LimitsFlag("session_limits { pending_requests: 2 }"), "--pending_threshold_bytes=4096",
                    HoldableRegistrationsFlag()}) {}
};

// A request is pending until its completion has been fetched: a client that does not listen cannot pile them up.
TEST_F(PendingQuota, CountsUntilTheCompletionIsFetched) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  v1::RegisterMrRequest request = RegisterRequest(0, {MdlEntry(memory, 0, kPage, kBase)}, kPage);
  request.set_allow_pending(true);
  std::vector<uint64_t> regions;
  HeldRegistrations held;
  for (uint64_t context = 1; context <= 2; ++context) {
    regions.push_back(session.CreateMr());
    request.set_mr_id(regions.back());
    request.set_request_context(context);
    EXPECT_EQ(session.Register(request).response.ntstatus(), kStatusPending);
  }
  request.set_mr_id(session.CreateMr());
  ExpectFigures(session.Register(request), ErrorReason::QUOTA_PENDING_REQUESTS, 2, 2, 1);
  held.LetGo();
  EXPECT_TRUE(Eventually([&] { return session.LocalToken(regions[0]).ok() && session.LocalToken(regions[1]).ok(); }));
  ExpectFigures(session.Register(request), ErrorReason::QUOTA_PENDING_REQUESTS, 2, 2, 1);
  EventReader events(session);
  events.NextCompletion();
  events.NextCompletion();
  EXPECT_TRUE(Eventually([&] { return session.Use("pending_requests").used() == 0; }));
  EXPECT_EQ(session.Register(request).response.ntstatus(), kStatusPending);
  events.NextCompletion();
}

TEST_F(Trust, Property08APageRegisteredAHundredTimesIsPinnedOnce) {
  constexpr uint64_t kTimes = 100;
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  std::vector<uint64_t> regions;
  for (uint64_t times = 1; times <= kTimes; ++times) {
    regions.push_back(session.CreateMr());
    session.RegisterWhole(regions.back(), memory, kPage);
    ASSERT_EQ(session.Use("pinned_bytes").used(), kPage);
    ASSERT_EQ(session.Use("registered_bytes").used(), times * kPage);
  }
  const std::string tenant = session.Call(&SessionStub::GetSession, {}).response.tenant();
  EXPECT_EQ(UsedOf(TenantNamed(daemon(), tenant).resources(), "pinned_bytes"), kPage);
  EXPECT_EQ(UsedOf(AdminStatus(daemon()).resources(), "pinned_bytes"), kPage);
  EXPECT_EQ(AdminStatus(daemon()).registered_pages(), kTimes);
  for (size_t index = 0; index + 1 < regions.size(); ++index) {
    ExpectOk(session.CloseMr(regions[index]));
    ASSERT_EQ(session.Use("pinned_bytes").used(), kPage) << "the page is still registered";
  }
  ExpectOk(session.Deregister(regions.back()));
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);
  EXPECT_EQ(session.Use("registered_bytes").used(), 0u);
}

}  // namespace
}  // namespace rnicd::test
