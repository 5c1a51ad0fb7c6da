// Group A of the edge cases: creating, closing, and the guarantees of a pending response.
#include <chrono>
#include <future>
#include <optional>
#include <set>
#include <vector>

#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/peer_access.h"
#include "tests/support/admin_client.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

CallResult<v1::BuildLamResponse> BuildOnePage(TestSession& session, uint64_t memory_id) {
  v1::BuildLamRequest request;
  request.set_adapter_id(session.adapter_id());
  *request.add_mdl_chain() = MdlEntry(memory_id, 0, kPage, kBase);
  request.set_length(kPage);
  return session.Call(&MemoryStub::BuildLam, request);
}

// Arms the initiator's completion queue of a connected queue pair and adds a completion, which causes one notification.
void CauseNotification(TestQueue& queue) {
  ExpectOk(Arm(queue.session(), queue.initiator_cq_id(), v1::CQ_NOTIFY_TYPE_ANY));
  queue.MustRun(Tick());
}

int CountNotifications(const std::vector<v1::WatchEventsResponse>& events, uint64_t cq_id) {
  int count = 0;
  for (const v1::WatchEventsResponse& event : events) {
    count += event.has_cq_notification() && event.cq_notification().cq_id() == cq_id ? 1 : 0;
  }
  return count;
}

// Row 1. NDK: a create that is done when the call returns hands the object over there, and its callback stays silent.
TEST_P(NdkConformance, Case001_CreateAnswersWithTheRegionAndNoEventFollows) {
  TestSession session(daemon());
  EventReader events(session);
  EXPECT_NE(session.CreateMr(), 0u);
  EXPECT_NE(session.CreateMr(true), 0u);
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 2. NDK: a pending create calls back once and brings the object. Creating never pends here, so the promise is
// shown on the request that does: one event, with the caller's context and the object's id.
TEST_P(NdkConformance, Case002_PendingRequestCompletesOnceAndNamesItsObject) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  HeldRegistrations held;
  RegisterPending(session, mr, memory, kPage, 7002);
  held.LetGo();
  const v1::RequestCompleted completed = events.NextCompletion();
  EXPECT_EQ(completed.kind(), v1::REQUEST_KIND_REGISTER_MR);
  EXPECT_EQ(completed.request_context(), 7002u);
  EXPECT_EQ(completed.object_id(), mr);
  EXPECT_EQ(completed.ntstatus(), kStatusSuccess);
  EXPECT_FALSE(completed.has_error());
  EXPECT_EQ(completed.registration().base_virtual_address(), kBase);
  EXPECT_EQ(completed.registration().length(), kPage);
  EXPECT_EQ(completed.registration().local_token(), session.LocalToken(mr).response.local_token());
  EXPECT_EQ(completed.registration().remote_token(), session.RemoteToken(mr).response.remote_token());
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 3. NDK: out of resources is STATUS_INSUFFICIENT_RESOURCES, at once or in the callback. Creating never pends
// here; row 30 shows the late form.
TEST_P(NdkConformance, Case003_CreateOutOfResourcesIsRefusedAtOnce) {
  TestSession session(tight_daemon());
  uint64_t last = 0;
  for (uint64_t count = 0; count < kTightRegions; ++count) {
    last = session.CreateMr();
  }
  v1::CreateMrRequest request;
  request.set_pd_id(session.pd_id());
  const auto refused = session.Call(&MemoryStub::CreateMr, request);
  ExpectRefused(refused, ErrorReason::QUOTA_REGIONS);
  EXPECT_EQ(refused.detail.limit(), kTightRegions);
  EXPECT_EQ(refused.detail.used(), kTightRegions);
  EXPECT_EQ(refused.detail.requested(), 1u);
  ExpectOk(session.CloseMr(last));
  EXPECT_NE(session.CreateMr(), 0u);
}

// Row 4. NDK: the completion may run before the initiating call returns, and the consumer may close the object in it.
// Here the event may overtake the answer, and the reading thread closes the region as soon as it sees the event.
TEST_P(NdkConformance, Case004_RegionIsClosedFromInsideItsCompletion) {
  constexpr uint64_t kRounds = 40;
  TestSession session(tight_daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  EventReader events(session, [&](const v1::WatchEventsResponse& event) {
    if (event.has_request_completed()) {
      ExpectOk(session.CloseMr(event.request_completed().object_id()));
    }
  });
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const uint64_t mr = session.CreateMr();
    RegisterPending(session, mr, memory, kPage, round);
    EXPECT_EQ(events.NextCompletion().request_context(), round);
    ExpectRefused(session.LocalToken(mr), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  }
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 6. NDK: closing an idle region is done at once without a callback, or pends with exactly one.
TEST_P(NdkConformance, Case006_IdleRegionClosesWithOneAnswer) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t mr = session.CreateMr();
  const auto closed = session.CloseMr(mr, true, 7006);
  ExpectOk(closed);
  const size_t expected_events = closed.response.ntstatus() == kStatusPending ? 1 : 0;
  EXPECT_TRUE(expected_events == 1 || closed.response.ntstatus() == kStatusSuccess);
  ExpectRefused(session.LocalToken(mr), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  EXPECT_EQ(CompletionsUntilEnd(session, events).size(), expected_events);
}

// Row 7. NDK: a close with a registration under way completes after that registration has completed or was cancelled
// and its callback has returned.
TEST_P(NdkConformance, Case007_CloseCompletesAfterThePendingRegistration) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  HeldRegistrations held;
  RegisterPending(session, mr, memory, kPage, 1);
  const auto closed = session.CloseMr(mr, true, 2);
  ExpectOk(closed);
  EXPECT_EQ(closed.response.ntstatus(), kStatusPending);
  held.LetGo();
  const v1::RequestCompleted first = events.NextCompletion();
  EXPECT_EQ(first.kind(), v1::REQUEST_KIND_REGISTER_MR);
  EXPECT_EQ(first.request_context(), 1u);
  const v1::RequestCompleted second = events.NextCompletion();
  EXPECT_EQ(second.kind(), v1::REQUEST_KIND_CLOSE_MR);
  EXPECT_EQ(second.request_context(), 2u);
  EXPECT_EQ(second.object_id(), mr);
  EXPECT_EQ(second.ntstatus(), kStatusSuccess);
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 7, for a caller that does not allow pending: the call itself waits for the registration.
TEST_P(NdkConformance, Case007_CloseWithoutPendingWaitsForTheRegistration) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  HeldRegistrations held;
  RegisterPending(session, mr, memory, kPage, 1);
  auto closing = std::async(std::launch::async, [&] { return session.CloseMr(mr); });
  EXPECT_TRUE(Eventually([&] { return session.LocalToken(mr).detail.reason() == v1::ERROR_REASON_OBJECT_NOT_FOUND; }));
  held.LetGo();
  const auto closed = closing.get();
  ExpectOk(closed);
  EXPECT_EQ(closed.response.ntstatus(), kStatusSuccess);
  ExpectOk(session.Release(memory));
  EXPECT_EQ(CompletionsUntilEnd(session, events).size(), 1u);
}

// Row 8. NDK: close succeeds or pends, whatever the object is doing.
TEST_P(NdkConformance, Case008_CloseSucceedsInEveryState) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t created = session.CreateMr();
  const uint64_t fast = session.CreateMr(true);
  const uint64_t registered = session.CreateMr();
  session.RegisterWhole(registered, memory, kPage);
  const uint64_t registering = session.CreateMr();
  const HeldRegistrations held;
  RegisterPending(session, registering, memory, kPage, 1);
  for (const uint64_t mr : {created, fast, registered, registering}) {
    const auto closed = session.CloseMr(mr, true, 2);
    ExpectOk(closed);
    EXPECT_TRUE(closed.response.ntstatus() == kStatusSuccess || closed.response.ntstatus() == kStatusPending);
  }
}

// Row 9. NDK is silent on closing a registered region. Recommended and done: it is deregistered, and its tokens are
// dead and its pages free when the close is complete. traffic_test.cc shows that nothing passes any more.
TEST_P(NdkConformance, Case009_CloseOfARegisteredRegionDeregistersIt) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(2 * kPage);
  const uint64_t mr = session.CreateMr();
  session.RegisterWhole(mr, memory, 2 * kPage);
  EXPECT_EQ(session.Use("pinned_bytes").used(), 2 * kPage);
  ExpectOk(session.CloseMr(mr));
  ExpectRefused(session.LocalToken(mr), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  ExpectRefused(session.RemoteToken(mr), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
  ExpectOk(session.Release(memory));
}

// Row 11. NDK: a protection domain may be closed before its regions; that pends until they are closed and their own
// close completions are over. Nothing new may be made in it meanwhile.
TEST_P(NdkConformance, Case011_DomainCloseCompletesAfterItsRegions) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t pd = session.pd_id();
  const uint64_t mr = session.CreateMr();
  HeldRegistrations held;
  RegisterPending(session, mr, memory, kPage, 1);
  const auto closing = session.ClosePd(pd, true, 3);
  ExpectOk(closing);
  EXPECT_EQ(closing.response.ntstatus(), kStatusPending);
  v1::CreateMrRequest request;
  request.set_pd_id(pd);
  EXPECT_FALSE(session.Call(&MemoryStub::CreateMr, request).ok());
  EXPECT_EQ(session.CloseMr(mr, true, 2).response.ntstatus(), kStatusPending);
  held.LetGo();
  for (const uint64_t context : {1, 2, 3}) {
    const v1::RequestCompleted completed = events.NextCompletion();
    EXPECT_EQ(completed.request_context(), context);
    EXPECT_EQ(completed.ntstatus(), kStatusSuccess);
  }
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 11, with the domain's other children: windows and queue pairs.
TEST_P(NdkConformance, Case011_DomainCloseCompletesAfterWindowsAndQueuePairs) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t pd = session.pd_id();
  const uint64_t mw = CreateMw(session);
  TestQueue queue(session);
  const auto closing = session.ClosePd(pd, true, 2);
  ExpectOk(closing);
  EXPECT_EQ(closing.response.ntstatus(), kStatusPending);
  v1::CreateMwRequest request;
  request.set_pd_id(pd);
  ExpectRefused(session.Call(&QueueStub::CreateMw, request), ErrorReason::OBJECT_CLOSING, "pd_id");
  ExpectOk(CloseMw(session, mw));
  ExpectNoEventSoFar(session, events);
  const auto closed = CloseQp(session, queue.qp_id(), true, 1);
  ExpectOk(closed);
  if (closed.response.ntstatus() == kStatusPending) {
    const v1::RequestCompleted first = events.NextCompletion();
    EXPECT_EQ(first.kind(), v1::REQUEST_KIND_CLOSE_QP);
    EXPECT_EQ(first.request_context(), 1u);
  }
  const v1::RequestCompleted completed = events.NextCompletion();
  EXPECT_EQ(completed.kind(), v1::REQUEST_KIND_CLOSE_PD);
  EXPECT_EQ(completed.request_context(), 2u);
  EXPECT_EQ(completed.object_id(), pd);
  EXPECT_EQ(completed.ntstatus(), kStatusSuccess);
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 11, for a completion queue: its queue pairs are its successors, whichever of the two queues it serves.
TEST_P(NdkConformance, Case011_CompletionQueueCloseCompletesAfterItsQueuePair) {
  TestSession session(daemon());
  EventReader events(session);
  TestQueue queue(session);
  for (const uint64_t cq_id : {queue.initiator_cq_id(), queue.receive_cq_id()}) {
    const auto closing = CloseCq(session, cq_id, true, cq_id);
    ExpectOk(closing);
    EXPECT_EQ(closing.response.ntstatus(), kStatusPending);
  }
  v1::CreateQpRequest request;
  request.set_pd_id(session.pd_id());
  request.set_receive_cq_id(queue.receive_cq_id());
  request.set_initiator_cq_id(queue.receive_cq_id());
  EXPECT_EQ(session.Call(&QueueStub::CreateQp, request).detail.reason(), v1::ERROR_REASON_OBJECT_CLOSING);
  ExpectNoEventSoFar(session, events);
  ExpectOk(CloseQp(session, queue.qp_id()));
  std::set<uint64_t> closed;
  for (int count = 0; count < 2; ++count) {
    const v1::RequestCompleted completed = events.NextCompletion();
    EXPECT_EQ(completed.kind(), v1::REQUEST_KIND_CLOSE_CQ);
    EXPECT_EQ(completed.object_id(), completed.request_context());
    EXPECT_EQ(completed.ntstatus(), kStatusSuccess);
    closed.insert(completed.object_id());
  }
  EXPECT_EQ(closed, (std::set<uint64_t>{queue.initiator_cq_id(), queue.receive_cq_id()}));
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 12. NDK: no completion follows an answer that was final, and nothing follows the completion of a close.
TEST_P(NdkConformance, Case012_FinalAnswersAreFollowedByNoEvent) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  v1::RegisterMrRequest request = RegisterRequest(mr, {MdlEntry(memory, 0, kPage, kBase)}, kPage);
  request.set_allow_pending(true);
  EXPECT_EQ(session.Register(request).response.ntstatus(), kStatusSuccess);
  ExpectRefused(session.Register(request), ErrorReason::REGION_ALREADY_REGISTERED, "mr_id");
  EXPECT_EQ(session.Deregister(mr, true, 1).response.ntstatus(), kStatusSuccess);
  EXPECT_EQ(session.CloseMr(mr, true, 2).response.ntstatus(), kStatusSuccess);
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 12, where the close pended: its completion is the last that is heard of the region.
TEST_P(NdkConformance, Case012_NothingFollowsTheCompletionOfAClose) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  HeldRegistrations held;
  RegisterPending(session, mr, memory, kPage, 1);
  ExpectOk(session.CloseMr(mr, true, 2));
  held.LetGo();
  const std::vector<v1::RequestCompleted> completions = CompletionsUntilEnd(session, events);
  ASSERT_FALSE(completions.empty());
  EXPECT_EQ(completions.back().request_context(), 2u);
  EXPECT_LE(completions.size(), 2u);
}

// Row 13. NDK: a completion queue's close completes when its notification callback has returned, and none follows. A
// notification that nobody has fetched yet is withdrawn; that of another queue is not.
TEST_P(NdkConformance, Case013_CloseWithdrawsTheNotification) {
  ConnectedPair pair(daemon());
  FreshConnection other(pair.near_session, pair.far_session);
  CauseNotification(pair.far);
  CauseNotification(other.far);
  ExpectOk(CloseQp(pair.far_session, pair.far.qp_id()));
  const auto closed = CloseCq(pair.far_session, pair.far.initiator_cq_id());
  ExpectOk(closed);
  EXPECT_EQ(closed.response.ntstatus(), kStatusSuccess);
  EventReader events(pair.far_session);
  std::optional<v1::WatchEventsResponse> event = events.Next();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->cq_notification().cq_id(), other.far.initiator_cq_id());
  ExpectOk(pair.far_session.CloseSession());
  EXPECT_EQ(CountNotifications(events.RestUntilEnd(), pair.far.initiator_cq_id()), 0);
}

// Row 13, from inside the notification: its thread closes the queue pair and the queue, and nothing of the queue
// follows.
TEST_P(NdkConformance, Case013_QueueIsClosedFromInsideItsNotification) {
  ConnectedPair pair(daemon());
  EventReader events(pair.far_session, [&](const v1::WatchEventsResponse& event) {
    if (event.has_cq_notification()) {
      ExpectOk(CloseQp(pair.far_session, pair.far.qp_id()));
      ExpectOk(CloseCq(pair.far_session, pair.far.initiator_cq_id()));
    }
  });
  ExpectOk(Arm(pair.far_session, pair.far.initiator_cq_id(), v1::CQ_NOTIFY_TYPE_ANY));
  pair.far.MustPost({Tick()});
  const std::optional<v1::WatchEventsResponse> event = events.Next();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->cq_notification().cq_id(), pair.far.initiator_cq_id());
  EXPECT_EQ(event->cq_notification().ntstatus(), kStatusSuccess);
  ExpectRefused(Arm(pair.far_session, pair.far.initiator_cq_id(), v1::CQ_NOTIFY_TYPE_ANY),
                ErrorReason::OBJECT_NOT_FOUND, "cq_id");
  ExpectOk(pair.far_session.CloseSession());
  EXPECT_EQ(CountNotifications(events.RestUntilEnd(), pair.far.initiator_cq_id()), 0);
}

// Row 14. NDK: closing an adapter blocks, and when it returns everything below is closed.
TEST_P(NdkConformance, Case014_AdapterCloseWaitsForItsDomains) {
  TestSession session(daemon());
  const uint64_t pd = session.pd_id();
  const uint64_t mr = session.CreateMr();
  AdapterClose close(session);
  v1::CreatePdRequest create;
  create.set_adapter_id(session.adapter_id());
  EXPECT_TRUE(Eventually([&] {
    const auto created = session.Call(&MemoryStub::CreatePd, create);
    if (created.ok()) {
      ExpectOk(session.ClosePd(created.response.pd_id()));
    }
    return !created.ok();
  })) << "an adapter that is being closed still takes domains";
  ExpectRefused(session.Call(&MemoryStub::CreatePd, create), ErrorReason::OBJECT_CLOSING, "adapter_id");
  ExpectOk(session.CloseMr(mr));
  close.MayEnd();
  ExpectOk(session.ClosePd(pd));
  close.ExpectDone();
}

// Row 14, with what else lies right below an adapter: completion queues and logical address mappings.
TEST_P(NdkConformance, Case014_AdapterCloseWaitsForQueuesAndMappings) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t cq = CreateCq(session, 16);
  const auto mapping = BuildOnePage(session, memory);
  ExpectOk(mapping);
  AdapterClose close(session);
  EXPECT_TRUE(Eventually([&] {
    const auto built = BuildOnePage(session, memory);
    if (built.ok()) {
      ExpectOk(ReleaseMapping(session, built.response.lam_id()));
    }
    return !built.ok();
  })) << "an adapter that is being closed still takes mappings";
  ExpectRefused(BuildOnePage(session, memory), ErrorReason::OBJECT_CLOSING, "adapter_id");
  v1::CreateCqRequest create;
  create.set_adapter_id(session.adapter_id());
  create.set_cq_depth(16);
  ExpectRefused(session.Call(&QueueStub::CreateCq, create), ErrorReason::OBJECT_CLOSING, "adapter_id");
  ExpectOk(ReleaseMapping(session, mapping.response.lam_id()));
  close.MayEnd();
  ExpectOk(CloseCq(session, cq));
  close.ExpectDone();
}

}  // namespace
}  // namespace rnicd::test
