// Group G of the edge cases, first half: memory windows; and the rows of groups A and B that are about them. The far
// side owns the region and the window, the near side is the peer.
#include <chrono>
#include <string>
#include <utility>

#include "tests/conformance/fast_scene.h"
#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/peer_access.h"

namespace rnicd::test {
namespace {

// A connection, a region of two pages at its far side, and an unbound window. The bytes count up, so that every address
// has different text.
class WindowScene {
 public:
  WindowScene(DaemonProcess& daemon, uint32_t region_flags)
      : pair_(daemon),
        region_(pair_.far_session, 2 * kPage, region_flags),
        sink_(pair_.near_session, kPage, kMrLocalWrite | kMrReadSink),
        mw_(CreateMw(pair_.far_session)) {
    for (size_t index = 0; index < region_.memory.bytes().size(); ++index) {
      region_.memory.bytes()[index] = static_cast<std::byte>(index % 251);
    }
  }

  TestQueue& near() { return pair_.near; }
  TestQueue& far() { return pair_.far; }
  TestSession& near_session() { return pair_.near_session; }
  TestSession& session() { return pair_.far_session; }
  RegisteredMemory& region() { return region_; }
  uint64_t mr() const { return region_.mr_id; }
  uint64_t mw() const { return mw_; }
  uint32_t region_token() const { return region_.remote_token(); }

  v1::WorkRequest BindOf(uint64_t offset, uint64_t length, uint32_t flags, uint64_t context = 1) const {
    return BindRequest(mr(), mw_, kBase + offset, length, flags, context);
  }
  uint32_t Bind(uint64_t offset, uint64_t length, uint32_t flags, Where where = Where::current()) {
    return RunForToken(far(), BindOf(offset, length, flags), where);
  }
  // The peer's read over the connection to which the window is bound; a refused read ends it.
  v1::CqResultEx Read(uint64_t offset, uint32_t length, uint32_t token, Where where = Where::current()) {
    return near().Run(ReadRequest({sink_.Piece(0, length)}, kBase + offset, token), where);
  }
  // Same; must return the bytes at this offset.
  void MustRead(uint64_t offset, uint32_t length, uint32_t token, Where where = Where::current()) {
    sink_.memory.Fill(std::byte{0xff});
    ExpectCompletion(Read(offset, length, token, where), NtStatus::kSuccess, 1, where);
    EXPECT_EQ(sink_.memory.Text(0, length), region_.memory.Text(offset, length));
  }

 private:
  ConnectedPair pair_;
  RegisteredMemory region_;
  RegisteredMemory sink_;
  const uint64_t mw_;
};

// Row 92. NDK: a window may begin at the region's first byte.
TEST_P(NdkConformance, Case092_WindowBeginsAtTheRegionsStart) {
  WindowScene scene(daemon(), kMrLocalWrite);
  const v1::CqResultEx bound = scene.far().Run(scene.BindOf(0, 100, kOpEveryRight, 7092));
  ExpectCompletion(bound, NtStatus::kSuccess, 7092);
  EXPECT_EQ(bound.type(), v1::OPERATION_TYPE_BIND);
  const auto token = WindowToken(scene.session(), scene.mw());
  ExpectOk(token);
  scene.MustRead(0, 100, token.response.remote_token());
  scene.near().MustRun(InlineWriteRequest("through", kBase + 50, token.response.remote_token()));
  EXPECT_EQ(scene.region().memory.Text(50, 7), "through");
}

// Row 92, at the region's end: NDK names no code. Recommended: STATUS_INVALID_PARAMETER. The window stays unbound.
TEST_P(NdkConformance, Case092_WindowAtTheRegionsEndIsRefused) {
  WindowScene scene(daemon(), kMrLocalWrite);
  scene.far().ExpectPostRefused(scene.BindOf(2 * kPage, 1, kOpRemoteRead), ErrorReason::WINDOW_OUTSIDE_REGION,
                                "bind.virtual_address");
  ExpectRefused(WindowToken(scene.session(), scene.mw()), ErrorReason::WINDOW_NOT_BOUND, "mw_id");
  const uint32_t token = scene.Bind(2 * kPage - 1, 1, kOpRemoteRead);
  scene.MustRead(2 * kPage - 1, 1, token);
}

// Row 93. NDK limits the start only. ND, and here: the whole window lies inside the region. Recommended code:
// STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case093_WindowPastTheRegionIsRefused) {
  WindowScene scene(daemon(), kMrLocalWrite);
  for (const auto& [address, length] : {std::pair{kBase, 2 * kPage + 1}, std::pair{kBase + kPage, kPage + 1},
                                        std::pair{kBase + 2 * kPage - 1, uint64_t{2}}, std::pair{kBase - 1, kPage}}) {
    scene.far().ExpectPostRefused(BindRequest(scene.mr(), scene.mw(), address, length, kOpRemoteRead),
                                  ErrorReason::WINDOW_OUTSIDE_REGION, "bind.virtual_address");
  }
  scene.far().ExpectPostRefused(scene.BindOf(0, 0, kOpRemoteRead), ErrorReason::LENGTH_ZERO, "bind.length");
  EXPECT_NE(scene.Bind(0, 2 * kPage, kOpRemoteRead), 0u);
}

// Row 93, in traffic: what a peer reaches ends where the window does, though the region goes on.
TEST_P(NdkConformance, Case093_PeerReachesTheWindowAndNoFurther) {
  constexpr uint64_t kOffset = kPage - 50;
  constexpr uint32_t kLength = 100;
  for (const uint64_t outside : {kOffset - 1, kOffset + 1, kOffset + kLength}) {
    WindowScene scene(daemon(), kMrLocalWrite);
    const uint32_t token = scene.Bind(kOffset, kLength, kOpRemoteRead);
    scene.MustRead(kOffset, kLength, token);
    ExpectCompletion(scene.Read(outside, kLength, token), NtStatus::kAccessViolation);
  }
}

// Row 94. NDK: a window for remote writes needs a region with local write; otherwise STATUS_ACCESS_VIOLATION at once.
TEST_P(NdkConformance, Case094_RemoteWriteNeedsLocalWriteOfTheRegion) {
  WindowScene scene(daemon(), kMrRemoteRead);
  for (const uint32_t flags : {kOpRemoteWrite, kOpEveryRight}) {
    scene.far().ExpectPostRefused(scene.BindOf(0, kPage, flags), ErrorReason::REGION_RIGHTS_INSUFFICIENT, "flags");
  }
  // The connection stays usable, and the region grants the right that it has.
  const uint32_t token = scene.Bind(0, kPage, kOpRemoteRead);
  scene.MustRead(0, 16, token);
}

// Row 94, about the flag itself: it is two bits, and half of it is none. Bind has no use for local write alone.
TEST_P(NdkConformance, Case094_HalfOfRemoteWriteIsRefused) {
  WindowScene scene(daemon(), kMrLocalWrite);
  scene.far().ExpectPostRefused(scene.BindOf(0, kPage, 0x20), ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE, "flags");
  scene.far().ExpectPostRefused(scene.BindOf(0, kPage, 0x10), ErrorReason::FLAGS_UNKNOWN, "flags");
  EXPECT_NE(scene.Bind(0, kPage, 0x30), 0u);
}

// Row 95. ND's own test: a window grants remote read over a region that does not, and the region itself still does not.
TEST_P(NdkConformance, Case095_RemoteReadNeedsNoRightOfTheRegion) {
  WindowScene scene(daemon(), kMrLocalWrite);
  AccessProbe probe(scene.near_session(), scene.session());
  const uint32_t token = scene.Bind(0, kPage, kOpRemoteRead);
  scene.MustRead(0, 64, token);
  ExpectCompletion(probe.PeerReads(kBase, 64, scene.region_token()), NtStatus::kAccessViolation);
}

// Row 95, the rest of that test: a write through the window is refused, and the receives of the side that it was aimed
// at are flushed.
TEST_P(NdkConformance, Case095_WindowForReadsTakesNoWrite) {
  WindowScene scene(daemon(), kMrLocalWrite);
  const uint32_t token = scene.Bind(0, kPage, kOpRemoteRead);
  scene.far().MustPost({ReceiveRequest({}, 7095)});
  const std::string before = scene.region().memory.Text(0, kPage);
  ExpectCompletion(scene.near().Run(InlineWriteRequest("no", kBase, token)), NtStatus::kAccessViolation);
  EXPECT_EQ(scene.region().memory.Text(0, kPage), before);
  ExpectCompletion(scene.far().NextReceive(), NtStatus::kCancelled, 7095);
}

// Row 96. ND demands a right, and its own test binds without. Recommended: it succeeds and grants nothing.
TEST_P(NdkConformance, Case096_BindWithoutRightsGrantsNothing) {
  for (const bool reading : {true, false}) {
    WindowScene scene(daemon(), kMrLocalWrite);
    const uint32_t token = scene.Bind(0, kPage, 0);
    const std::string before = scene.region().memory.Text(0, kPage);
    const v1::CqResultEx refused =
        reading ? scene.Read(0, 1, token) : scene.near().Run(InlineWriteRequest("no", kBase, token));
    ExpectCompletion(refused, NtStatus::kAccessViolation);
    EXPECT_EQ(scene.region().memory.Text(0, kPage), before);
  }
}

// Row 96, second half: MaxWindowSize bytes can be bound at once; one more cannot. Recommended code:
// STATUS_INVALID_PARAMETER. Where a window may be as large as a region, the one byte more also lies outside the region,
// and which of the two is said is open.
TEST_P(NdkConformance, Case096_AdapterMaximumIsTheLastThatWorks) {
  ConnectedPair pair(tight_daemon());
  const uint64_t maximum = AdapterInfo(pair.far_session).max_window_size();
  ASSERT_EQ(maximum, kTightRegistrationBytes);
  const RegisteredMemory region(pair.far_session, maximum, kMrLocalWrite);
  const uint64_t mw = CreateMw(pair.far_session);
  const auto refused = pair.far.Post({BindRequest(region.mr_id, mw, kBase, maximum + 1, kOpRemoteRead)});
  ExpectOk(refused);
  EXPECT_EQ(refused.response.posted(), 0u);
  EXPECT_EQ(refused.response.failure().ntstatus(), static_cast<uint32_t>(NtStatus::kInvalidParameter));
  EXPECT_TRUE(refused.response.failure().reason() == v1::ERROR_REASON_ABOVE_ADAPTER_LIMIT ||
              refused.response.failure().reason() == v1::ERROR_REASON_WINDOW_OUTSIDE_REGION)
      << refused.response.failure().ShortDebugString();
  EXPECT_TRUE(pair.far.DrainInitiator().empty());
  EXPECT_NE(RunForToken(pair.far, BindRequest(region.mr_id, mw, kBase, maximum, kOpRemoteRead)), 0u);
}

// Row 97. NDK is silent; ND wants the window invalidated first. Recommended: STATUS_INVALID_DEVICE_REQUEST in the
// completion.
TEST_P(NdkConformance, Case097_BindOfABoundWindowFails) {
  WindowScene scene(daemon(), kMrLocalWrite);
  scene.Bind(0, kPage, kOpRemoteRead);
  ExpectCompletion(scene.far().Run(scene.BindOf(kPage, kPage, kOpRemoteRead)), NtStatus::kInvalidDeviceRequest);
  ExpectInError(scene.far());
}

// Row 97, as ND wants it: invalidated first, in the same chain, it can be bound elsewhere; what the first binding gave
// is gone.
TEST_P(NdkConformance, Case097_InvalidatedWindowCanBeBoundAgain) {
  WindowScene scene(daemon(), kMrLocalWrite);
  const uint32_t first = scene.Bind(0, 100, kOpRemoteRead);
  const v1::PostResponse posted = scene.far().MustPost(
      {InvalidateMwRequest(scene.mw(), v1::OP_FLAG_SILENT_SUCCESS), scene.BindOf(kPage, 100, kOpRemoteRead)});
  ExpectCompletion(scene.far().NextInitiator(), NtStatus::kSuccess);
  ASSERT_EQ(posted.issued_tokens_size(), 1);
  EXPECT_EQ(posted.issued_tokens(0).request_index(), 1u);
  scene.MustRead(kPage, 100, posted.issued_tokens(0).remote_token());
  ExpectCompletion(scene.Read(0, 100, first), NtStatus::kAccessViolation);
}

// Row 98. NDK: the token can be read as soon as Bind has returned, before the request is executed. Here it waits
// behind a send that has no receive.
TEST_P(NdkConformance, Case098_TokenIsKnownWhenBindReturns) {
  WindowScene scene(daemon(), kMrLocalWrite);
  ExpectRefused(WindowToken(scene.session(), scene.mw()), ErrorReason::WINDOW_NOT_BOUND, "mw_id");
  HoldBack(scene.far());
  const v1::PostResponse posted = scene.far().MustPost({scene.BindOf(0, kPage, kOpRemoteRead, 7098)});
  ASSERT_EQ(posted.issued_tokens_size(), 1);
  const uint32_t token = posted.issued_tokens(0).remote_token();
  EXPECT_NE(token, 0u);
  const auto asked = WindowToken(scene.session(), scene.mw());
  ExpectOk(asked);
  EXPECT_EQ(asked.response.remote_token(), token);
  EXPECT_TRUE(scene.far().DrainInitiator().empty());

  Release(scene.near());
  ExpectCompletion(scene.far().NextInitiator(), NtStatus::kSuccess, 7098);
  scene.MustRead(0, kPage, token);
}

// Row 98, where NDK is silent and ND expects windows of type 2: the token is valid through the queue pair that the
// window was bound on, and through no other of the domain.
TEST_P(NdkConformance, Case098_TokenWorksThroughItsQueuePairOnly) {
  WindowScene scene(daemon(), kMrLocalWrite);
  AccessProbe probe(scene.near_session(), scene.session());
  const uint32_t token = scene.Bind(0, kPage, kOpEveryRight);
  ExpectCompletion(probe.PeerReads(kBase, 16, token), NtStatus::kAccessViolation);
  ExpectCompletion(probe.PeerWrites("elsewhere", kBase, token), NtStatus::kAccessViolation);
  scene.MustRead(0, 16, token);
}

// Row 99. NDK: STATUS_CONNECTION_INVALID at once; nothing is bound.
TEST_P(NdkConformance, Case099_BindNeedsAConnection) {
  WindowScene scene(daemon(), kMrLocalWrite);
  TestQueue unconnected(scene.session());
  unconnected.ExpectPostRefused(scene.BindOf(0, kPage, kOpRemoteRead), ErrorReason::QP_NOT_CONNECTED, "");
  ExpectRefused(WindowToken(scene.session(), scene.mw()), ErrorReason::WINDOW_NOT_BOUND, "mw_id");
  // Otherwise the window would still be bound.
  EXPECT_NE(scene.Bind(0, kPage, kOpRemoteRead), 0u);
}

// Row 10. NDK: a window is the successor of the region that it was bound to: closing the region first pends until the
// window is closed.
TEST_P(NdkConformance, Case010_RegionCloseCompletesAfterItsWindow) {
  WindowScene scene(daemon(), kMrLocalWrite);
  EventReader events(scene.session());
  const uint32_t token = scene.Bind(0, kPage, kOpRemoteRead);
  const auto closing = scene.session().CloseMr(scene.mr(), true, 2);
  ExpectOk(closing);
  EXPECT_EQ(closing.response.ntstatus(), kStatusPending);
  ExpectNoEventSoFar(scene.session(), events);
  const auto window = CloseMw(scene.session(), scene.mw(), true, 1);
  ExpectOk(window);
  if (window.response.ntstatus() == kStatusPending) {
    const v1::RequestCompleted first = events.NextCompletion();
    EXPECT_EQ(first.kind(), v1::REQUEST_KIND_CLOSE_MW);
    EXPECT_EQ(first.request_context(), 1u);
  }
  const v1::RequestCompleted completed = events.NextCompletion();
  EXPECT_EQ(completed.kind(), v1::REQUEST_KIND_CLOSE_MR);
  EXPECT_EQ(completed.request_context(), 2u);
  EXPECT_EQ(completed.object_id(), scene.mr());
  EXPECT_EQ(completed.ntstatus(), kStatusSuccess);
  ExpectOk(scene.session().Release(scene.region().memory.id()));
  ExpectCompletion(scene.Read(0, 16, token), NtStatus::kAccessViolation);
  EXPECT_TRUE(CompletionsUntilEnd(scene.session(), events).empty());
}

// Row 34. NDK is silent; ND refuses with DEVICE_BUSY while a window is bound, and so is it here. Region and window stay
// as they were, and once the window is invalidated the region can go.
TEST_P(NdkConformance, Case034_DeregisterWithABoundWindowIsRefused) {
  WindowScene scene(daemon(), kMrLocalWrite | kMrRemoteRead);
  const uint32_t token = scene.Bind(0, kPage, kOpRemoteRead);
  const auto refused = scene.session().Deregister(scene.mr());
  // The request has only one field, so the error need not name it.
  ExpectRefused(refused, ErrorReason::REGION_HAS_WINDOWS, refused.detail.field());
  scene.MustRead(0, 16, token);
  scene.MustRead(kPage, 16, scene.region_token());
  scene.far().MustRun(InvalidateMwRequest(scene.mw()));
  ExpectOk(scene.session().Deregister(scene.mr()));
  ExpectCompletion(scene.Read(0, 16, token), NtStatus::kAccessViolation);
}

}  // namespace
}  // namespace rnicd::test
