// Group A of the edge cases: creating, closing, and what a pending answer promises.
#include <chrono>
#include <future>

#include "tests/conformance/ndk_conformance.h"
#include "tests/support/admin_client.h"

namespace rnicd::test {
namespace {

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
  RegisterPending(session, mr, memory, kPage, 7002);
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
  RegisterPending(session, mr, memory, kPage, 1);
  const auto closed = session.CloseMr(mr, true, 2);
  ExpectOk(closed);
  EXPECT_EQ(closed.response.ntstatus(), kStatusPending);
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
  RegisterPending(session, mr, memory, kPage, 1);
  const auto closed = session.CloseMr(mr);
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
  RegisterPending(session, registering, memory, kPage, 1);
  for (const uint64_t mr : {created, fast, registered, registering}) {
    const auto closed = session.CloseMr(mr, true, 2);
    ExpectOk(closed);
    EXPECT_TRUE(closed.response.ntstatus() == kStatusSuccess || closed.response.ntstatus() == kStatusPending);
  }
}

// Row 9. NDK is silent on closing a registered region. Recommended and done: it is deregistered, and its tokens are
// dead and its pages free when the close is complete.
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
// close completions are over. Nothing new may be made in it meanwhile. (Windows and queues are not on this wire.)
TEST_P(NdkConformance, Case011_DomainCloseCompletesAfterItsRegions) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t pd = session.pd_id();
  const uint64_t mr = session.CreateMr();
  RegisterPending(session, mr, memory, kPage, 1);
  const auto closing = session.ClosePd(pd, true, 3);
  ExpectOk(closing);
  EXPECT_EQ(closing.response.ntstatus(), kStatusPending);
  v1::CreateMrRequest request;
  request.set_pd_id(pd);
  EXPECT_FALSE(session.Call(&MemoryStub::CreateMr, request).ok());
  EXPECT_EQ(session.CloseMr(mr, true, 2).response.ntstatus(), kStatusPending);
  for (const uint64_t context : {1, 2, 3}) {
    const v1::RequestCompleted completed = events.NextCompletion();
    EXPECT_EQ(completed.request_context(), context);
    EXPECT_EQ(completed.ntstatus(), kStatusSuccess);
  }
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
  RegisterPending(session, mr, memory, kPage, 1);
  ExpectOk(session.CloseMr(mr, true, 2));
  const std::vector<v1::RequestCompleted> completions = CompletionsUntilEnd(session, events);
  ASSERT_FALSE(completions.empty());
  EXPECT_EQ(completions.back().request_context(), 2u);
  EXPECT_LE(completions.size(), 2u);
}

// Row 14. NDK: closing an adapter blocks, and when it returns everything below is closed.
TEST_P(NdkConformance, Case014_AdapterCloseWaitsForItsDomains) {
  TestSession session(daemon());
  const uint64_t pd = session.pd_id();
  const uint64_t mr = session.CreateMr();
  v1::CloseAdapterRequest close;
  close.set_adapter_id(session.adapter_id());
  auto closed = std::async(std::launch::async, [&] { return session.Call(&AdapterStub::CloseAdapter, close); });
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
  EXPECT_EQ(closed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  ExpectOk(session.ClosePd(pd));
  ExpectOk(closed.get());
}

}  // namespace
}  // namespace rnicd::test
