// Group F of the edge cases, first half: Invalidate, and reads that invalidate their sink.
#include <string>

#include "tests/conformance/fast_scene.h"
#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/peer_access.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

// Row 75. NDK: the invalidate completes with success, and neither the owner nor a peer can use its token afterwards.
TEST_P(NdkConformance, Case075_InvalidateEndsBothTokens) {
  FastScene scene(daemon(), 1);
  AccessProbe probe(scene.near_session(), scene.far_session());
  const uint32_t remote_token = scene.RegisterWhole(kOpEveryRight);
  const v1::Sge piece = Sge(kBase, 16, scene.local_token());
  const std::string before = scene.memory().Text(0, kPage);
  EXPECT_EQ(scene.Read(kBase, remote_token, 16), before.substr(0, 16));
  ExpectCompletion(probe.OwnerWrites({piece}), NtStatus::kSuccess);
  EXPECT_EQ(probe.peer_memory().Text(0, 16), before.substr(0, 16));

  const v1::CqResultEx invalidated = scene.far().Run(InvalidateMrRequest(scene.mr(), 0, 7075));
  ExpectCompletion(invalidated, NtStatus::kSuccess, 7075);
  EXPECT_EQ(invalidated.type(), v1::OPERATION_TYPE_INVALIDATE);

  probe.peer_memory().SetText(0, "nothing of yours");
  ExpectCompletion(probe.PeerReads(kBase, 16, remote_token), NtStatus::kAccessViolation);
  ExpectCompletion(probe.PeerWrites("stale", kBase, remote_token), NtStatus::kAccessViolation);
  ExpectCompletion(probe.OwnerWrites({piece}), NtStatus::kAccessViolation);
  ExpectCompletion(probe.OwnerReads({piece}), NtStatus::kAccessViolation);
  EXPECT_EQ(probe.peer_memory().Text(0, 16), "nothing of yours");
  EXPECT_EQ(scene.memory().Text(0, kPage), before);
}

// Row 76. NDK: the second invalidate fails "as usual", without a code. Recommended: STATUS_INVALID_DEVICE_REQUEST in
// the completion, because only the order of execution decides.
TEST_P(NdkConformance, Case076_SecondInvalidateFails) {
  FastScene scene(daemon(), 1);
  scene.RegisterWhole(kOpRemoteRead);
  scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  ExpectCompletion(scene.far().Run(InvalidateMrRequest(scene.mr())), NtStatus::kInvalidDeviceRequest);
  ExpectInError(scene.far());
}

// Row 76, with both in one chain: both are posted, and what stands behind the failure is flushed.
TEST_P(NdkConformance, Case076_SecondInvalidateOfAChainFails) {
  FastScene scene(daemon(), 1);
  scene.RegisterWhole(kOpRemoteRead);
  scene.far().MustPost({InvalidateMrRequest(scene.mr(), 0, 1), InvalidateMrRequest(scene.mr(), 0, 2),
                        InvalidateMrRequest(scene.mr(), v1::OP_FLAG_SILENT_SUCCESS, 3)});
  ExpectCompletion(scene.far().NextInitiator(), NtStatus::kSuccess, 1);
  ExpectCompletion(scene.far().NextInitiator(), NtStatus::kInvalidDeviceRequest, 2);
  ExpectCompletion(scene.far().NextInitiator(), NtStatus::kCancelled, 3);
}

// Row 76, for a window.
TEST_P(NdkConformance, Case076_SecondInvalidateOfAWindowFails) {
  ConnectedPair pair(daemon());
  const RegisteredMemory region(pair.far_session, kPage, kMrLocalWrite);
  const uint64_t mw = CreateMw(pair.far_session);
  RunForToken(pair.far, BindRequest(region.mr_id, mw, kBase, kPage, kOpRemoteRead));
  pair.far.MustRun(InvalidateMwRequest(mw));
  ExpectCompletion(pair.far.Run(InvalidateMwRequest(mw)), NtStatus::kInvalidDeviceRequest);
}

// Row 77. NDK wants a registered region or a bound window and names no code. Recommended:
// STATUS_INVALID_DEVICE_REQUEST in the completion.
TEST_P(NdkConformance, Case077_InvalidateOfARegionNeverRegisteredFails) {
  FastScene scene(daemon(), 1);
  ExpectCompletion(scene.far().Run(InvalidateMrRequest(scene.mr())), NtStatus::kInvalidDeviceRequest);
}

TEST_P(NdkConformance, Case077_InvalidateOfAnUnboundWindowFails) {
  ConnectedPair pair(daemon());
  ExpectCompletion(pair.far.Run(InvalidateMwRequest(CreateMw(pair.far_session))), NtStatus::kInvalidDeviceRequest);
}

// Row 77, for a region that was not even initialized: that does not depend on what is queued ahead, so it is refused
// at once, and the queue pair goes on.
TEST_P(NdkConformance, Case077_InvalidateOfAnUninitializedRegionIsRefused) {
  FastScene scene(daemon(), 1);
  scene.far().ExpectPostRefused(InvalidateMrRequest(scene.far_session().CreateMr(true)),
                                ErrorReason::REGION_NOT_INITIALIZED, "invalidate.mr_id");
  scene.RegisterWhole(kOpRemoteRead);
}

// Row 78. NDK forbids it and names no code. Recommended: STATUS_INVALID_DEVICE_STATE at once; the region stays usable,
// and so does the connection.
TEST_P(NdkConformance, Case078_RegionOfRegisterMrIsRefusedAndStaysUsable) {
  ConnectedPair pair(daemon());
  RegisteredMemory region(pair.far_session, kPage, kMrRemoteRead);
  RegisteredMemory sink(pair.near_session, kPage, kMrLocalWrite | kMrReadSink);
  region.memory.SetText(0, "still here");
  pair.far.ExpectPostRefused(InvalidateMrRequest(region.mr_id), ErrorReason::REGION_WRONG_KIND, "invalidate.mr_id");
  pair.near.MustRun(ReadRequest({sink.Piece(0, 10)}, kBase, region.remote_token()));
  EXPECT_EQ(sink.memory.Text(0, 10), "still here");
  EXPECT_EQ(pair.far.Query().state(), v1::QP_STATE_READY_TO_SEND);
}

// Row 79. NDK: STATUS_CONNECTION_INVALID at once, and no completion. The registration stays; another queue pair of the
// domain can end it.
TEST_P(NdkConformance, Case079_InvalidateNeedsAConnection) {
  FastScene scene(daemon(), 1);
  const uint32_t remote_token = scene.RegisterWhole(kOpRemoteRead);
  TestQueue never_connected(scene.far_session());
  never_connected.ExpectPostRefused(InvalidateMrRequest(scene.mr()), ErrorReason::QP_NOT_CONNECTED, "");
  ExpectOk(Disconnect(scene.far()));
  scene.far().ExpectPostRefused(InvalidateMrRequest(scene.mr()), ErrorReason::QP_NOT_CONNECTED, "");

  EXPECT_EQ(scene.ReadStatus(kBase, remote_token, 16), kStatusSuccess);
  FreshConnection other(scene.near_session(), scene.far_session());
  other.far.MustRun(InvalidateMrRequest(scene.mr()));
  EXPECT_EQ(scene.ReadStatus(kBase, remote_token, 16), kStatusAccessViolation);
}

// Row 79, the other way out: closing the region ends its registration and gives the pages back.
TEST_P(NdkConformance, Case079_CloseFreesWhatCannotBeInvalidated) {
  FastScene scene(daemon(), 1);
  const uint32_t remote_token = scene.RegisterWhole(kOpRemoteRead);
  ExpectOk(Disconnect(scene.far()));
  ExpectOk(ReleaseMapping(scene.far_session(), scene.memory().lam().lam_id()));
  EXPECT_EQ(scene.far_session().Use("pinned_bytes").used(), kPage);
  ExpectOk(scene.far_session().CloseMr(scene.mr()));
  EXPECT_EQ(scene.far_session().Use("pinned_bytes").used(), 0u);
  EXPECT_EQ(scene.ReadStatus(kBase, remote_token, 16), kStatusAccessViolation);
}

// Row 80. NDK: with READ_FENCE the invalidate waits for the read into the region. The data arrives whole, then the
// token is dead.
TEST_P(NdkConformance, Case080_FencedInvalidateWaitsForTheRead) {
  FastScene scene(daemon_with(HoldableReadsFlags()), 1);
  AccessProbe probe(scene.near_session(), scene.far_session());
  RegisteredMemory source(scene.near_session(), kPage, kMrRemoteRead);
  source.memory.Fill(std::byte{'a'});
  scene.RegisterWhole(kOpLocalWrite | v1::OP_FLAG_RDMA_READ_SINK);
  const v1::Sge sink = Sge(kBase, kPage, scene.local_token());
  HeldReads held;
  scene.far().MustPost({ReadRequest({sink}, kBase, source.remote_token(), 0, 1),
                        InvalidateMrRequest(scene.mr(), v1::OP_FLAG_READ_FENCE, 2)});
  held.LetGo();
  ExpectCompletion(scene.far().NextInitiator(), NtStatus::kSuccess, 1);
  ExpectCompletion(scene.far().NextInitiator(), NtStatus::kSuccess, 2);
  EXPECT_EQ(scene.memory().Text(0, kPage), std::string(kPage, 'a'));
  ExpectCompletion(probe.OwnerWrites({sink}), NtStatus::kAccessViolation);
}

// Row 81. NDK is silent on the same without the fence. ND: transfers in progress fail. A card may also finish the read
// first. What must not be: a read that reports success without its data, or data that arrives after both are over.
TEST_P(NdkConformance, Case081_UnfencedInvalidateLeavesNothingUnderWay) {
  FastScene scene(daemon_with(HoldableReadsFlags()), 1);
  RegisteredMemory source(scene.near_session(), kPage, kMrRemoteRead);
  source.memory.Fill(std::byte{'a'});
  scene.RegisterWhole(kOpLocalWrite | v1::OP_FLAG_RDMA_READ_SINK);
  HeldReads held;
  scene.far().MustPost({ReadRequest({Sge(kBase, kPage, scene.local_token())}, kBase, source.remote_token(), 0, 1),
                        InvalidateMrRequest(scene.mr(), 0, 2)});
  held.LetGo();
  const v1::CqResultEx read = scene.far().NextInitiator();
  const v1::CqResultEx invalidate = scene.far().NextInitiator();
  EXPECT_EQ(invalidate.result().request_context(), 2u);
  if (read.result().ntstatus() == kStatusSuccess) {
    ExpectCompletion(read, NtStatus::kSuccess, 1);
    ExpectCompletion(invalidate, NtStatus::kSuccess, 2);
    EXPECT_EQ(scene.memory().Text(0, kPage), std::string(kPage, 'a'));
  } else {
    ExpectCompletion(read, NtStatus::kAccessViolation, 1);
    // The invalidate may have been executed before the read failed, or flushed because of the failure.
    EXPECT_TRUE(invalidate.result().ntstatus() == kStatusSuccess || invalidate.result().ntstatus() == kStatusCancelled)
        << invalidate.ShortDebugString();
  }
  scene.memory().Fill(std::byte{'z'});
  MustReadLater(scene.far_session(), scene.near_session());
  EXPECT_EQ(scene.memory().Text(0, kPage), std::string(kPage, 'z'));
}

// Row 81, where the read is the peer's: the owner may use its memory for something else once the invalidate is
// complete, and the peer sees none of that.
TEST_P(NdkConformance, Case081_PeerReadUnderWaySeesNothingLater) {
  FastScene scene(daemon_with(HoldableReadsFlags()), 1);
  RegisteredMemory sink(scene.near_session(), kPage, kMrLocalWrite | kMrReadSink);
  scene.memory().Fill(std::byte{'a'});
  const uint32_t remote_token = scene.RegisterWhole(kOpRemoteRead);
  HeldReads held;
  scene.near().MustPost({ReadRequest({sink.Piece(0, kPage)}, kBase, remote_token)});
  scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  scene.memory().Fill(std::byte{'b'});
  held.LetGo();
  const v1::CqResultEx read = scene.near().NextInitiator();
  if (read.result().ntstatus() == kStatusSuccess) {
    EXPECT_EQ(sink.memory.Text(0, kPage), std::string(kPage, 'a'));
  } else {
    ExpectCompletion(read, NtStatus::kAccessViolation);
    EXPECT_EQ(sink.memory.Text(0, kPage).find('b'), std::string::npos);
  }
}

// Row 82. NDK is silent on which queue pair invalidates. Recommended and done: any of the region's domain.
TEST_P(NdkConformance, Case082_AnotherQueuePairOfTheDomainInvalidates) {
  FastScene scene(daemon(), 1);
  const uint32_t remote_token = scene.RegisterWhole(kOpRemoteRead);
  FreshConnection other(scene.near_session(), scene.far_session());
  other.far.MustRun(InvalidateMrRequest(scene.mr()));
  EXPECT_EQ(scene.ReadStatus(kBase, remote_token, 16), kStatusAccessViolation);
  // The registration has ended for every queue pair.
  EXPECT_NE(scene.RegisterWhole(kOpRemoteRead), 0u);
}

// Row 82, across domains: refused at once with STATUS_ACCESS_VIOLATION.
TEST_P(NdkConformance, Case082_QueuePairOfAnotherDomainIsRefused) {
  ConnectedPair pair(daemon());
  v1::CreatePdRequest create_pd;
  create_pd.set_adapter_id(pair.far_session.adapter_id());
  const auto pd = pair.far_session.Call(&MemoryStub::CreatePd, create_pd);
  ExpectOk(pd);
  v1::CreateMrRequest create_mr;
  create_mr.set_pd_id(pd.response.pd_id());
  create_mr.set_fast_register(true);
  const auto mr = pair.far_session.Call(&MemoryStub::CreateMr, create_mr);
  ExpectOk(mr);
  ExpectOk(InitializeFast(pair.far_session, mr.response.mr_id(), 1, true));
  pair.far.ExpectPostRefused(InvalidateMrRequest(mr.response.mr_id()), ErrorReason::DOMAIN_MISMATCH,
                             "invalidate.mr_id");
}

// A reader with two fast regions of a page each, both registered at kBase with every right, and eight bytes at a peer
// to read into them. The reader is the far side, so that the near side can use the remote tokens.
class TwoSinks {
 public:
  explicit TwoSinks(DaemonProcess& daemon)
      : scene_(daemon, 1),
        other_memory_(scene_.far_session(), kPage),
        other_mr_(FastRegion(scene_.far_session(), 1)),
        source_(scene_.near_session(), kPage, kMrRemoteRead),
        probe_(scene_.near_session(), scene_.far_session()) {
    first_token_ = scene_.RegisterWhole(kOpEveryRight | v1::OP_FLAG_RDMA_READ_SINK);
    second_token_ = RunForToken(scene_.far(), FastRegisterRequest(other_mr_, other_memory_.Pages(0, 1), kPage, kBase,
                                                                  kOpEveryRight | v1::OP_FLAG_RDMA_READ_SINK));
    source_.memory.SetText(0, "oneTWO");
  }

  TestQueue& reader() { return scene_.far(); }
  TestSession& session() { return scene_.far_session(); }
  uint64_t first_mr() const { return scene_.mr(); }

  // Reads three bytes into each region.
  v1::WorkRequest Read(uint32_t flags, uint64_t context = 1) {
    const uint32_t other_token = session().LocalToken(other_mr_).response.local_token();
    return ReadRequest({Sge(kBase, 3, scene_.local_token()), Sge(kBase, 3, other_token)}, kBase, source_.remote_token(),
                       flags, context);
  }
  void ExpectDataArrived() {
    EXPECT_EQ(scene_.memory().Text(0, 3), "one");
    EXPECT_EQ(other_memory_.Text(0, 3), "TWO");
  }
  // Expects this status for local and remote use of the first region.
  void ExpectFirst(NtStatus expected, Where where = Where::current()) {
    ExpectCompletion(probe_.PeerReads(kBase, 3, first_token_, where), expected, 1, where);
    ExpectCompletion(probe_.OwnerWrites({Sge(kBase, 3, scene_.local_token())}, where), expected, 1, where);
  }
  void ExpectSecondWorks(Where where = Where::current()) {
    const uint32_t other_token = session().LocalToken(other_mr_).response.local_token();
    ExpectCompletion(probe_.PeerReads(kBase, 3, second_token_, where), NtStatus::kSuccess, 1, where);
    ExpectCompletion(probe_.OwnerWrites({Sge(kBase, 3, other_token)}, where), NtStatus::kSuccess, 1, where);
    EXPECT_EQ(probe_.peer_memory().Text(0, 3), "TWO");
  }

 private:
  FastScene scene_;
  TestMemory other_memory_;
  const uint64_t other_mr_;
  RegisteredMemory source_;
  AccessProbe probe_;
  uint32_t first_token_ = 0;
  uint32_t second_token_ = 0;
};

// Row 88. NDK: where the adapter can, a read that succeeds leaves the registration of its first SGE invalidated, and
// no other.
TEST_P(NdkConformance, Case088_ReadInvalidatesItsFirstSinkOnly) {
  TwoSinks sinks(daemon());
  EXPECT_NE(AdapterInfo(sinks.session()).adapter_flags() & kAdapterReadLocalInvalidate, 0u);
  const v1::CqResultEx read = sinks.reader().Run(sinks.Read(v1::OP_FLAG_RDMA_READ_LOCAL_INVALIDATE));
  ExpectCompletion(read, NtStatus::kSuccess);
  EXPECT_EQ(read.type(), v1::OPERATION_TYPE_READ);
  sinks.ExpectDataArrived();
  sinks.ExpectFirst(NtStatus::kAccessViolation);
  sinks.ExpectSecondWorks();
  // The registration is already invalidated.
  ExpectCompletion(sinks.reader().Run(InvalidateMrRequest(sinks.first_mr())), NtStatus::kInvalidDeviceRequest);
}

// Row 90. NDK: where the adapter cannot, the flag is ignored.
TEST_P(NdkConformance, Case090_FlagIsIgnoredWhereTheAdapterCannot) {
  TwoSinks sinks(daemon_with(AdapterFlagsWithout(kAdapterReadLocalInvalidate)));
  EXPECT_EQ(AdapterInfo(sinks.session()).adapter_flags() & kAdapterReadLocalInvalidate, 0u);
  sinks.reader().MustRun(sinks.Read(v1::OP_FLAG_RDMA_READ_LOCAL_INVALIDATE));
  sinks.ExpectDataArrived();
  sinks.ExpectFirst(NtStatus::kSuccess);
  sinks.ExpectSecondWorks();
}

// Row 91. A page of NDK prints 0x200 for the flag of row 88, which is the number of DEFER; the header has 0x100. A read
// with 0x200 is a deferred read and leaves its sink alone.
TEST_P(NdkConformance, Case091_DeferredReadInvalidatesNothing) {
  constexpr uint32_t kPrintedOnThePage = 0x200;
  TwoSinks sinks(daemon());
  sinks.reader().MustPost({sinks.Read(kPrintedOnThePage, 1), sinks.Read(0, 2)});
  ExpectCompletion(sinks.reader().NextInitiator(), NtStatus::kSuccess, 1);
  ExpectCompletion(sinks.reader().NextInitiator(), NtStatus::kSuccess, 2);
  sinks.ExpectDataArrived();
  sinks.ExpectFirst(NtStatus::kSuccess);
  sinks.ExpectSecondWorks();
}

}  // namespace
}  // namespace rnicd::test
