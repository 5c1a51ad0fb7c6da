// Pending requests: their events come in order and exactly once, whatever else happens meanwhile.
#include <chrono>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/child_client.h"
#include "tests/support/event_reader.h"
#include "tests/support/expect.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"
#include "tests/support/tested_provider.h"

namespace rnicd::test {
namespace {

class Pending : public DaemonTest {
 protected:
  explicit Pending(std::chrono::milliseconds delay = kHandfulOfCalls)
      : DaemonTest({"--pending_threshold_bytes=4096", ProviderFlag("register_delay_us", delay)}) {}

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

// Requests that pend for longer than a call of the operator takes on any machine.
class LongPending : public Pending {
 protected:
  LongPending() : Pending(std::chrono::seconds(2)) {}
};

TEST_F(Pending, EventsAreNumberedFromOneWithoutHoles) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  std::multiset<uint64_t> contexts;
  for (uint64_t context = 10; context < 14; ++context) {
    RegisterLater(session, session.CreateMr(), memory, context);
  }
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
  RegisterLater(session, mr, memory, 1);
  ExpectRefused(session.Deregister(mr, true, 2), ErrorReason::REGION_BUSY, "mr_id");
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

TEST_F(Pending, SecondStreamIsRefused) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  RegisterLater(session, session.CreateMr(), memory, 1);
  EXPECT_EQ(events.NextCompletion().request_context(), 1u);
  EventReader second(session);
  ExpectRefused(second.End().value_or(CallOutcome()), ErrorReason::EVENT_STREAM_ALREADY_OPEN);
  RegisterLater(session, session.CreateMr(), memory, 2);
  EXPECT_EQ(events.NextCompletion().request_context(), 2u);
}

TEST_F(Pending, WithoutLeaveTheCallWaits) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const auto begin = std::chrono::steady_clock::now();
  session.RegisterWhole(session.CreateMr(), memory, kPage);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kHandfulOfCalls);
  ExpectOk(session.CloseSession());
  EXPECT_EQ(events.RestUntilEnd().size(), 1u);
}

TEST_F(LongPending, OperatorSeesTheState) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  EXPECT_EQ(AdminRegion(daemon(), mr).value_or(v1::RegionInfo()).state(), "created");
  RegisterLater(session, mr, memory, 1);
  EXPECT_EQ(AdminRegion(daemon(), mr).value_or(v1::RegionInfo()).state(), "registering");
  EXPECT_EQ(session.Use("pending_requests").used(), 1u);
  events.NextCompletion();
  EXPECT_EQ(AdminRegion(daemon(), mr).value_or(v1::RegionInfo()).state(), "registered");
  EXPECT_TRUE(Eventually([&] { return session.Use("pending_requests").used() == 0; }));
}

TEST_F(Pending, SessionThatIsClosedMeanwhileTakesEverythingBack) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  RegisterLater(session, session.CreateMr(), memory, 1);
  ExpectOk(session.CloseSession());
  const v1::GetStatusResponse status = AdminStatus(daemon());
  EXPECT_EQ(status.device_regions(), 0u);
  EXPECT_EQ(status.registered_pages(), 0u);
  const std::vector<v1::WatchEventsResponse> rest = events.RestUntilEnd();
  EXPECT_LE(CountCompletions(rest, 1), 1);
  ASSERT_FALSE(rest.empty());
  EXPECT_TRUE(rest.back().has_session_ending());
}

TEST_F(LongPending, ClientThatDiesMeanwhileLeavesNothing) {
  const auto client = ChildClient::Start(daemon(), WorkloadUid());
  ASSERT_NE(client, nullptr);
  client->MustRun("open");
  const std::string memory = client->MustRun("alloc 4096").values["memory"];
  client->Send("register " + memory + " 4096 0");
  EXPECT_TRUE(Eventually([&] { return Used(AdminStatus(daemon()), "pending_requests") == 1; }));
  client->KillHard();
  ExpectNothingHeld(daemon(), idle());
}

TEST_F(Pending, CallerThatGivesUpWaitingLeavesTheRequestRunning) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  const auto give_up_soon = [&] {
    return session.Call(&MemoryStub::RegisterMr, RegisterRequest(mr, {MdlEntry(memory, 0, kPage, kBase)}, kPage),
                        std::chrono::milliseconds(50));
  };
  EXPECT_EQ(give_up_soon().code, grpc::StatusCode::DEADLINE_EXCEEDED);
  // The call may have ended before it left the client, so it is made until the daemon has it; then it is refused.
  EXPECT_TRUE(Eventually([&] {
    EXPECT_FALSE(give_up_soon().ok());
    return session.LocalToken(mr).ok();
  }));
  ExpectOk(session.Deregister(mr));
}

}  // namespace
}  // namespace rnicd::test
