// Group C of the edge cases: initializing a region for fast registration.
#include <limits>
#include <map>
#include <thread>
#include <vector>

#include "tests/conformance/fast_scene.h"
#include "tests/conformance/ndk_conformance.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

constexpr uint32_t kGuaranteedPages = 16;
// A page count that no provider of these tests supports.
constexpr uint32_t kTooManyPages = std::numeric_limits<uint32_t>::max();

uint32_t FrmrPageCount(TestSession& session) {
  v1::QueryAdapterInfoRequest query;
  query.set_adapter_id(session.adapter_id());
  const auto info = session.Call(&AdapterStub::QueryAdapterInfo, query);
  ExpectOk(info);
  return info.response.info().frmr_page_count();
}

// Initializes with pending allowed; expects STATUS_PENDING.
void InitializePending(TestSession& session, uint64_t mr_id, uint32_t pages, uint64_t context) {
  const auto answer = InitializeFast(session, mr_id, pages, true, true, context);
  ExpectOk(answer);
  EXPECT_EQ(answer.response.ntstatus(), kStatusPending);
}

// Row 37. NDK: the adapter's hint is at least 16, and every count up to it works. That the region then takes so many
// pages shows in the last byte of the last one, written by a peer.
TEST_P(NdkConformance, Case037_CountsUpToTheHintAreInitialized) {
  TestSession session(daemon());
  const uint32_t hint = FrmrPageCount(session);
  EXPECT_GE(hint, kGuaranteedPages);
  for (const uint32_t count : {1u, kGuaranteedPages, hint}) {
    FastScene scene(daemon(), count);
    const uint32_t token = scene.RegisterWhole(kOpEveryRight);
    scene.Write("!", kBase + count * kPage - 1, token);
    EXPECT_EQ(scene.memory().Text(count * kPage - 1, 1), "!");
    EXPECT_EQ(scene.far_session().Use("fast_register_pages").used(), count);
  }
}

// Row 37. NDK is silent on count 0. Recommended: STATUS_INVALID_PARAMETER; the region stays as it was.
TEST_P(NdkConformance, Case037_CountZeroIsRefused) {
  TestSession session(daemon());
  const uint64_t mr = session.CreateMr(true);
  ExpectRefused(InitializeFast(session, mr, 0, true), ErrorReason::FIELD_OUT_OF_RANGE, "adapter_page_count");
  EXPECT_EQ(session.Use("fast_register_pages").used(), 0u);
  ExpectRefused(session.LocalToken(mr), ErrorReason::REGION_NOT_INITIALIZED, "mr_id");
  ExpectRefused(session.RemoteToken(mr), ErrorReason::REGION_NOT_INITIALIZED, "mr_id");
  ExpectOk(InitializeFast(session, mr, 1, true));
}

// Above kTooManyPages, so that it is the adapter that refuses.
constexpr char kWidePageLimit[] = "session_limits { fast_register_pages: 1000000000000 }";

// Row 38. NDK: STATUS_IMPLEMENTATION_LIMIT for a count that the adapter does not support.
TEST_P(NdkConformance, Case038_CountAboveTheAdapterIsRefused) {
  TestSession session(daemon_with({LimitsFlag(kWidePageLimit)}));
  const uint64_t mr = session.CreateMr(true);
  ExpectRefused(InitializeFast(session, mr, kTooManyPages, true), ErrorReason::PAGE_COUNT_UNSUPPORTED,
                "adapter_page_count");
  EXPECT_EQ(session.Use("fast_register_pages").used(), 0u);
  ExpectRefused(session.LocalToken(mr), ErrorReason::REGION_NOT_INITIALIZED, "mr_id");
  ExpectOk(InitializeFast(session, mr, 1, true));
}

// Row 38, later: where the request pends, its completion carries the limit.
TEST_P(NdkConformance, Case038_CountAboveTheAdapterInTheCompletion) {
  TestSession session(daemon_with({LimitsFlag(kWidePageLimit), "--pending_threshold_bytes=4096"}));
  EventReader events(session);
  const uint64_t mr = session.CreateMr(true);
  InitializePending(session, mr, kTooManyPages, 7038);
  const v1::RequestCompleted completed = events.NextCompletion();
  EXPECT_EQ(completed.kind(), v1::REQUEST_KIND_INITIALIZE_FAST_REGISTER_MR);
  EXPECT_EQ(completed.request_context(), 7038u);
  EXPECT_EQ(completed.object_id(), mr);
  EXPECT_EQ(completed.ntstatus(), static_cast<uint32_t>(NtStatus::kImplementationLimit));
  ExpectRefused(completed.error(), ErrorReason::PAGE_COUNT_UNSUPPORTED, "adapter_page_count");
  EXPECT_EQ(session.Use("fast_register_pages").used(), 0u);
  ExpectOk(InitializeFast(session, mr, 1, true));
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 38. NDK: the hint is no maximum, and may be one: just above it both answers are right, and no third.
TEST_P(NdkConformance, Case038_CountJustAboveTheHintSucceedsOrIsALimit) {
  TestSession session(daemon());
  const uint64_t mr = session.CreateMr(true);
  const auto answer = InitializeFast(session, mr, FrmrPageCount(session) + 1, true);
  if (answer.ok()) {
    EXPECT_EQ(answer.response.ntstatus(), kStatusSuccess);
    ExpectOk(session.LocalToken(mr));
  } else {
    ExpectRefused(answer, ErrorReason::PAGE_COUNT_UNSUPPORTED, "adapter_page_count");
  }
}

// Row 39. NDK wants a region created for fast registration and names no code. Recommended:
// STATUS_INVALID_DEVICE_STATE; the region stays usable for what it is.
TEST_P(NdkConformance, Case039_NormalRegionIsRefused) {
  TestSession session(daemon());
  const uint64_t mr = session.CreateMr(false);
  ExpectRefused(InitializeFast(session, mr, 1, true), ErrorReason::REGION_WRONG_KIND, "mr_id");
  EXPECT_EQ(session.Use("fast_register_pages").used(), 0u);
  session.RegisterWhole(mr, session.SealedMemory(kPage), kPage);
  ExpectRefused(InitializeFast(session, mr, 1, true), ErrorReason::REGION_WRONG_KIND, "mr_id");
}

// Row 40. NDK: initializations of different regions may run side by side, and all succeed.
TEST_P(NdkConformance, Case040_DifferentRegionsAreInitializedInParallel) {
  constexpr uint64_t kRegions = 8;
  TestSession session(slow_daemon());
  EventReader events(session);
  std::map<uint64_t, uint64_t> region_of_context;
  HeldRegistrations held;
  for (uint64_t context = 1; context <= kRegions; ++context) {
    region_of_context[context] = session.CreateMr(true);
    InitializePending(session, region_of_context[context], 2, context);
  }
  held.LetGo();
  for (uint64_t count = 0; count < kRegions; ++count) {
    const v1::RequestCompleted completed = events.NextCompletion();
    EXPECT_EQ(completed.kind(), v1::REQUEST_KIND_INITIALIZE_FAST_REGISTER_MR);
    EXPECT_EQ(completed.ntstatus(), kStatusSuccess);
    EXPECT_EQ(region_of_context[completed.request_context()], completed.object_id());
    ExpectOk(session.LocalToken(completed.object_id()));
    region_of_context.erase(completed.request_context());
  }
  EXPECT_TRUE(region_of_context.empty()) << "a region was never reported";
  EXPECT_EQ(session.Use("fast_register_pages").used(), 2 * kRegions);
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 40, for callers that wait, each in a thread of its own.
TEST_P(NdkConformance, Case040_ParallelCallersThatWaitAllSucceed) {
  constexpr size_t kRegions = 8;
  TestSession session(daemon());
  std::vector<uint64_t> regions;
  for (size_t index = 0; index < kRegions; ++index) {
    regions.push_back(session.CreateMr(true));
  }
  std::vector<CallResult<v1::InitializeFastRegisterMrResponse>> answers(kRegions);
  {
    std::vector<std::jthread> threads;
    for (size_t index = 0; index < kRegions; ++index) {
      threads.emplace_back([&, index] { answers[index] = InitializeFast(session, regions[index], 3, true); });
    }
  }
  for (const auto& answer : answers) {
    ExpectOk(answer);
    EXPECT_EQ(answer.response.ntstatus(), kStatusSuccess);
  }
  EXPECT_EQ(session.Use("fast_register_pages").used(), 3 * kRegions);
}

// Row 41. NDK does not say whether a region can be initialized again. Chosen: it cannot, and the first count holds.
TEST_P(NdkConformance, Case041_SecondInitializationIsRefused) {
  FastScene scene(daemon(), 2);
  const uint64_t mr = FastRegion(scene.far_session(), 1);
  ExpectRefused(InitializeFast(scene.far_session(), mr, 2, true), ErrorReason::REGION_ALREADY_INITIALIZED, "mr_id");
  scene.far().ExpectPostRefused(FastRegisterRequest(mr, scene.memory().Pages(0, 2), 2 * kPage, kBase, kOpRemoteRead),
                                ErrorReason::PAGE_COUNT_ABOVE_REGION, "fast_register.adapter_page_array");
  scene.far().MustRun(FastRegisterRequest(mr, scene.memory().Pages(0, 1), kPage, kBase, kOpRemoteRead));
  ExpectRefused(InitializeFast(scene.far_session(), mr, 1, true), ErrorReason::REGION_ALREADY_INITIALIZED, "mr_id");
  const uint32_t token = scene.far_session().RemoteToken(mr).response.remote_token();
  EXPECT_TRUE(scene.Read(kBase, token, kPage) == scene.Laid({0}, 0, kPage));
}

// Row 41, while the first is still pending.
TEST_P(NdkConformance, Case041_InitializationDuringAnotherIsRefused) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t mr = session.CreateMr(true);
  HeldRegistrations held;
  InitializePending(session, mr, 1, 1);
  ExpectRefused(InitializeFast(session, mr, 1, true), ErrorReason::REGION_BUSY, "mr_id");
  held.LetGo();
  EXPECT_EQ(events.NextCompletion().ntstatus(), kStatusSuccess);
  ExpectRefused(InitializeFast(session, mr, 1, true), ErrorReason::REGION_ALREADY_INITIALIZED, "mr_id");
  EXPECT_EQ(session.Use("fast_register_pages").used(), 1u);
}

// Row 42. NDK does not say whether a FastRegister may be posted while the initialization is pending. Recommended: it
// is refused. The same request works when the initialization is complete.
TEST_P(NdkConformance, Case042_FastRegisterDuringTheInitializationIsRefused) {
  FastScene scene(slow_daemon(), 1);
  EventReader events(scene.far_session());
  const uint64_t mr = scene.far_session().CreateMr(true);
  const v1::WorkRequest request =
      FastRegisterRequest(mr, scene.memory().Pages(0, 1), kPage, kBase, kOpRemoteRead | kOpLocalWrite);
  HeldRegistrations held;
  InitializePending(scene.far_session(), mr, 1, 1);
  scene.far().ExpectPostRefused(request, ErrorReason::REGION_NOT_INITIALIZED, "fast_register.mr_id");
  ExpectRefused(scene.far_session().RemoteToken(mr), ErrorReason::REGION_NOT_INITIALIZED, "mr_id");
  held.LetGo();
  EXPECT_EQ(events.NextCompletion().ntstatus(), kStatusSuccess);
  scene.far().MustRun(request);
  const uint32_t token = scene.far_session().RemoteToken(mr).response.remote_token();
  EXPECT_TRUE(scene.Read(kBase, token, kPage) == scene.Laid({0}, 0, kPage));
}

// Row 43. NDK is silent on the remote token of a region without remote access. Recommended: a value that no peer can
// use, neither before a FastRegister nor after it.
TEST_P(NdkConformance, Case043_RemoteTokenWithoutRemoteAccessOpensNothing) {
  FastScene scene(daemon(), 1, false);
  const std::string before = scene.memory().Text(0, kPage);
  const auto idle = scene.far_session().RemoteToken(scene.mr());
  ExpectOk(idle);
  EXPECT_NE(idle.response.remote_token(), 0u);
  EXPECT_EQ(scene.ReadStatus(kBase, idle.response.remote_token(), 1), kStatusAccessViolation);
  const uint32_t registered = scene.RegisterWhole(kOpLocalWrite);
  EXPECT_NE(registered, 0u);
  for (const uint32_t token : {idle.response.remote_token(), registered}) {
    EXPECT_EQ(scene.ReadStatus(kBase, token, 1), kStatusAccessViolation);
    EXPECT_EQ(scene.WriteStatus("!", kBase, token), kStatusAccessViolation);
  }
  EXPECT_TRUE(scene.memory().Text(0, kPage) == before);
}

}  // namespace
}  // namespace rnicd::test
