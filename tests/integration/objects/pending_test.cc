// Pending requests: their events come in order and exactly once, whatever else happens meanwhile.
#include <future>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/held_card.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

class Pending : public DaemonTest {
 protected:
  Pending() : DaemonTest({"--pending_threshold_bytes=4096", HoldableRegistrationsFlag()}) {}

  std::string StateOf(uint64_t mr) const { return AdminRegion(daemon(), mr).value_or(v1::RegionInfo()).state(); }

  static CallResult<v1::RegisterMrResponse> RegisterLater(TestSession& session, uint64_t mr, uint64_t memory,
                                                          uint64_t context) {
    v1::RegisterMrRequest request = RegisterRequest(mr, {MdlEntry(memory, 0, kPage, kBase)}, kPage);
    request.set_allow_pending(true);
    request.set_request_context(context);
    auto answer = session.Register(request);
    ExpectOk(answer);
    EXPECT_EQ(answer.response.ntstatus(), kStatusPending);
    return answer;
  }
};

TEST_F(Pending, EventsAreNumberedFromOneWithoutHoles) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  std::multiset<uint64_t> contexts;
  HeldRegistrations held;
  for (uint64_t context = 10; context < 14; ++context) {
    RegisterLater(session, session.CreateMr(), memory, context);
  }
  held.LetGo();
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    const std::optional<v1::WatchEventsResponse> event = events.Next();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->sequence(), sequence);
    contexts.insert(event->request_completed().request_context());
  }
  EXPECT_EQ(contexts, (std::multiset<uint64_t>{10, 11, 12, 13}));
  ExpectOk(session.CloseSession());
  const std::vector<v1::WatchEventsResponse> rest = events.RestUntilEnd();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].sequence(), 5u);
  EXPECT_EQ(rest[0].session_ending().cause(), "closed");
}

// A region is registered or it is not: the requests on one region complete in the order in which they were made.
TEST_F(Pending, RequestsOfOneRegionCompleteInOrder) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  HeldRegistrations held;
  RegisterLater(session, mr, memory, 1);
  ExpectRefused(session.Deregister(mr, true, 2), ErrorReason::REGION_BUSY, "mr_id");
  held.LetGo();
  EXPECT_EQ(events.NextCompletion().request_context(), 1u);
  EXPECT_EQ(session.Deregister(mr, true, 3).response.ntstatus(), kStatusPending);
  const auto closed = session.CloseMr(mr, true, 4);
  ExpectOk(closed);
  EXPECT_EQ(events.NextCompletion().request_context(), 3u);
  if (closed.response.ntstatus() == kStatusPending) {
    EXPECT_EQ(events.NextCompletion().request_context(), 4u);
  }
}

TEST_F(Pending, EventsWaitForAStream) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  RegisterLater(session, mr, memory, 77);
  EXPECT_TRUE(Eventually([&] { return session.LocalToken(mr).ok(); }));
  EventReader events(session);
  EXPECT_EQ(events.NextCompletion().request_context(), 77u);
}

TEST_F(Pending, EventsAreNotRepeatedOnALaterStream) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  {
    EventReader events(session);
    RegisterLater(session, session.CreateMr(), memory, 1);
    EXPECT_EQ(events.NextCompletion().request_context(), 1u);
  }
  // The daemon may take a moment to notice that the first stream has ended.
  std::optional<v1::WatchEventsResponse> event;
  RegisterLater(session, session.CreateMr(), memory, 2);
  EXPECT_TRUE(Eventually([&] {
    EventReader events(session);
    event = events.Next();
    return event.has_value();
  }));
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->request_completed().request_context(), 2u);
  EXPECT_EQ(event->sequence(), 2u);
}

TEST_F(Pending, WithoutLeaveTheCallWaits) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  HeldRegistrations held;
  auto registered = std::async(std::launch::async, [&] { return session.RegisterWhole(mr, memory, kPage); });
  EXPECT_TRUE(Eventually([&] { return StateOf(mr) == "registering"; }));
  held.LetGo();
  EXPECT_EQ(registered.get().length(), kPage);
  ExpectOk(session.CloseSession());
  EXPECT_EQ(events.RestUntilEnd().size(), 1u);
}

TEST_F(Pending, OperatorSeesTheState) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  EXPECT_EQ(StateOf(mr), "created");
  HeldRegistrations held;
  RegisterLater(session, mr, memory, 1);
  EXPECT_EQ(StateOf(mr), "registering");
  EXPECT_EQ(session.Use("pending_requests").used(), 1u);
  held.LetGo();
  events.NextCompletion();
  EXPECT_EQ(StateOf(mr), "registered");
  EXPECT_TRUE(Eventually([&] { return session.Use("pending_requests").used() == 0; }));
}

TEST_F(Pending, SessionThatIsClosedMeanwhileTakesEverythingBack) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  RawClient other(daemon().rpc_socket());
  v1::JoinSessionRequest join;
  join.set_session_id(session.session_id());
  ExpectOk(other.Call(&SessionStub::JoinSession, join));
  HeldRegistrations held;
  RegisterLater(session, session.CreateMr(), memory, 1);
  auto closed = std::async(std::launch::async, [&] { return session.CloseSession(); });
  EXPECT_TRUE(Eventually([&] { return !other.Call(&SessionStub::GetSession, {}).ok(); }));
  held.LetGo();
  ExpectOk(closed.get());
  const v1::GetStatusResponse status = AdminStatus(daemon());
  EXPECT_EQ(status.device_regions(), 0u);
  EXPECT_EQ(status.registered_pages(), 0u);
  const std::vector<v1::WatchEventsResponse> rest = events.RestUntilEnd();
  EXPECT_EQ(CountCompletions(rest, 1), 1);
  ASSERT_FALSE(rest.empty());
  EXPECT_TRUE(rest.back().has_session_ending());
}

TEST_F(Pending, ClientThatDiesMeanwhileLeavesNothing) {
  const auto client = ChildClient::Start(daemon(), WorkloadUid());
  ASSERT_NE(client, nullptr);
  client->MustRun("open");
  const std::string memory = client->MustRun("alloc 4096").values["memory"];
  HeldRegistrations held;
  client->Send("register " + memory + " 4096 0");
  EXPECT_TRUE(Eventually([&] { return Used(AdminStatus(daemon()), "pending_requests") == 1; }));
  client->KillHard();
  EXPECT_TRUE(Eventually([&] { return AdminStatus(daemon()).sessions_ending() == 1; }));
  held.LetGo();
  ExpectNothingHeld(daemon(), idle());
}

TEST_F(Pending, CallerThatGivesUpWaitingLeavesTheRequestRunning) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  grpc::ClientContext context;
  HeldRegistrations held;
  auto registered = std::async(std::launch::async, [&] {
    v1::RegisterMrResponse response;
    return session.Call("/rnicd.v1.MemoryService/RegisterMr",
                        RegisterRequest(mr, {MdlEntry(memory, 0, kPage, kBase)}, kPage), &response, context);
  });
  EXPECT_TRUE(Eventually([&] { return StateOf(mr) == "registering"; }));
  context.TryCancel();
  EXPECT_EQ(registered.get().code, grpc::StatusCode::CANCELLED);
  held.LetGo();
  EXPECT_TRUE(Eventually([&] { return session.LocalToken(mr).ok(); }));
  ExpectOk(session.Deregister(mr));
}

}  // namespace
}  // namespace rnicd::test
