// Group F of the edge cases, second half: SendAndInvalidate. The near side sends, the far side owns the invalidated
// object.
#include <string>
#include <vector>

#include "tests/conformance/fast_scene.h"
#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/peer_access.h"

namespace rnicd::test {
namespace {

// A SendAndInvalidate of this text for this token.
v1::WorkRequest Order(const std::string& text, uint32_t remote_token, uint64_t context = 1) {
  return SendAndInvalidateRequest({InlineSge(text)}, remote_token, v1::OP_FLAG_INLINE, context);
}

// Sends the token over a fresh connection; both sides of it must then fail.
void ExpectTokenEndsTheConnection(TestSession& near_session, TestSession& far_session, uint32_t token,
                                  Where where = Where::current()) {
  const RegisteredMemory inbox(far_session, kPage, kMrLocalWrite);
  FreshConnection connection(near_session, far_session);
  connection.far.MustPost({ReceiveRequest({inbox.Piece(0, 16)}, 1), ReceiveRequest({inbox.Piece(16, 16)}, 2)});
  ExpectCompletion(connection.near.Run(Order("bad", token), where), NtStatus::kRemoteResources, 1, where);
  ExpectCompletion(connection.far.NextReceive(where), NtStatus::kInvalidDeviceRequest, 1, where);
  ExpectCompletion(connection.far.NextReceive(where), NtStatus::kCancelled, 2, where);
  ExpectInError(connection.near, where);
  ExpectInError(connection.far, where);
}

// Row 83. NDK: the receiver invalidates the token before its receive completes. The receive says that it did, and with
// which token; the sender sees a plain send.
TEST_P(NdkConformance, Case083_TokenIsDeadWhenTheReceiveCompletes) {
  FastScene scene(daemon(), 1);
  AccessProbe probe(scene.near_session(), scene.far_session());
  const RegisteredMemory inbox(scene.far_session(), kPage, kMrLocalWrite);
  const uint32_t remote_token = scene.RegisterWhole(kOpEveryRight);
  const std::string before = scene.memory().Text(0, kPage);
  EXPECT_EQ(scene.Read(kBase, remote_token, 16), before.substr(0, 16));
  scene.far().MustPost({ReceiveRequest({inbox.Piece(100, 64)}, 7083)});
  scene.near().MustPost({Order("done with it", remote_token, 83)});

  const v1::CqResultEx received = scene.far().NextReceive();
  ExpectCompletion(received, NtStatus::kSuccess, 7083);
  EXPECT_EQ(received.type(), v1::OPERATION_TYPE_RECEIVE_AND_INVALIDATE);
  EXPECT_EQ(received.type_specific_completion_output(), remote_token);
  EXPECT_EQ(received.result().bytes_transferred(), 12u);
  EXPECT_EQ(inbox.memory.Text(100, 12), "done with it");
  ExpectCompletion(probe.PeerReads(kBase, 16, remote_token), NtStatus::kAccessViolation);
  ExpectCompletion(probe.PeerWrites("stale", kBase, remote_token), NtStatus::kAccessViolation);
  ExpectCompletion(probe.OwnerWrites({Sge(kBase, 16, scene.local_token())}), NtStatus::kAccessViolation);
  EXPECT_EQ(scene.memory().Text(0, kPage), before);

  const v1::CqResultEx sent = scene.near().NextInitiator();
  ExpectCompletion(sent, NtStatus::kSuccess, 83);
  EXPECT_EQ(sent.type(), v1::OPERATION_TYPE_SEND);
}

// Row 83, afterwards: the region is as after an Invalidate, and can be registered again.
TEST_P(NdkConformance, Case083_RegionCanBeRegisteredAgain) {
  FastScene scene(daemon(), 1);
  const uint32_t first = scene.RegisterWhole(kOpRemoteRead);
  scene.far().MustPost({ReceiveRequest({})});
  scene.near().MustRun(Order("", first));
  ExpectCompletion(scene.far().NextReceive(), NtStatus::kSuccess);
  const uint32_t second = scene.RegisterWhole(kOpRemoteRead);
  EXPECT_EQ(scene.Read(kBase, second, 16), scene.memory().Text(0, 16));
}

// Row 83, with the token of a window: its binding ends, and the region below it stays registered.
TEST_P(NdkConformance, Case083_WindowIsInvalidatedAsWell) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  RegisteredMemory region(pair.far_session, kPage, kMrLocalWrite | kMrRemoteRead);
  region.memory.SetText(0, "below the window");
  const uint64_t mw = CreateMw(pair.far_session);
  const uint32_t token = RunForToken(pair.far, BindRequest(region.mr_id, mw, kBase, 16, kOpEveryRight));
  pair.near.MustRun(InlineWriteRequest("BELOW", kBase, token));
  pair.far.MustPost({ReceiveRequest({})});
  pair.near.MustRun(Order("", token));
  const v1::CqResultEx received = pair.far.NextReceive();
  ExpectCompletion(received, NtStatus::kSuccess);
  EXPECT_EQ(received.type(), v1::OPERATION_TYPE_RECEIVE_AND_INVALIDATE);
  EXPECT_EQ(received.type_specific_completion_output(), token);
  ExpectCompletion(probe.PeerReads(kBase, 16, region.remote_token()), NtStatus::kSuccess);
  EXPECT_EQ(probe.peer_memory().Text(0, 16), "BELOW the window");
  ExpectCompletion(pair.near.Run(InlineWriteRequest("stale", kBase, token)), NtStatus::kAccessViolation);
  EXPECT_EQ(region.memory.Text(0, 16), "BELOW the window");
  // An unbound window does not block the region.
  ExpectOk(pair.far_session.Deregister(region.mr_id));
}

// Row 84. NDK: the plain results bring the receive without a word about the invalidation, which happens all the same;
// the owner's own Invalidate then fails as any second one does.
TEST_P(NdkConformance, Case084_PlainResultsDoNotTellOfTheInvalidation) {
  FastScene scene(daemon(), 1);
  const uint32_t remote_token = scene.RegisterWhole(kOpRemoteRead);
  scene.far().MustPost({ReceiveRequest({}, 7084)});
  scene.near().MustRun(Order("", remote_token));

  std::vector<v1::CqResult> results;
  EXPECT_TRUE(Eventually([&] {
    const auto polled = Results(scene.far_session(), scene.far().receive_cq_id(), 4);
    ExpectOk(polled);
    results.insert(results.end(), polled.response.results().begin(), polled.response.results().end());
    return !results.empty();
  }));
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].ntstatus(), kStatusSuccess);
  EXPECT_EQ(results[0].request_context(), 7084u);
  EXPECT_TRUE(scene.far().DrainReceive().empty());
  EXPECT_EQ(scene.ReadStatus(kBase, remote_token, 16), kStatusAccessViolation);
  ExpectCompletion(scene.far().Run(InvalidateMrRequest(scene.mr())), NtStatus::kInvalidDeviceRequest);
}

// Row 85. NDK: with a bad token the receiving side ends the connection. First a token that was good once.
TEST_P(NdkConformance, Case085_DeadTokenEndsTheConnection) {
  FastScene scene(daemon(), 1);
  const uint32_t remote_token = scene.RegisterWhole(kOpRemoteRead);
  scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  ExpectTokenEndsTheConnection(scene.near_session(), scene.far_session(), remote_token);
}

// Row 85, with numbers that never were a token.
TEST_P(NdkConformance, Case085_MadeUpTokenEndsTheConnection) {
  FastScene scene(daemon(), 1);
  const uint32_t remote_token = scene.RegisterWhole(kOpRemoteRead);
  for (const uint32_t made_up : {0u, remote_token ^ 0x00ffff00u}) {
    ExpectTokenEndsTheConnection(scene.near_session(), scene.far_session(), made_up);
  }
  EXPECT_EQ(scene.ReadStatus(kBase, remote_token, 16), kStatusSuccess);
}

// Row 85, with a token that is good, but for another owner's memory: that owner does not notice.
TEST_P(NdkConformance, Case085_TokenOfAnotherSessionEndsTheConnection) {
  FastScene scene(daemon(), 1);
  TestSession third(daemon(), "third");
  const uint32_t remote_token = scene.RegisterWhole(kOpRemoteRead);
  ExpectTokenEndsTheConnection(scene.near_session(), third, remote_token);
  EXPECT_EQ(scene.ReadStatus(kBase, remote_token, 16), kStatusSuccess);
}

// Row 85, with the token of a window, over another queue pair of its domain than the one it was bound on. ND expects
// windows of type 2, which belong to a queue pair: the other connection ends, the window and its own connection stay.
TEST_P(NdkConformance, Case085_WindowTokenOverAnotherQueuePairEndsThatConnection) {
  ConnectedPair pair(daemon());
  RegisteredMemory region(pair.far_session, kPage, kMrLocalWrite);
  const uint64_t mw = CreateMw(pair.far_session);
  const uint32_t token = RunForToken(pair.far, BindRequest(region.mr_id, mw, kBase, kPage, kOpEveryRight));
  ExpectTokenEndsTheConnection(pair.near_session, pair.far_session, token);
  pair.near.MustRun(InlineWriteRequest("still bound", kBase, token));
  EXPECT_EQ(region.memory.Text(0, 11), "still bound");
}

// Row 86. NDK is silent on the token of a normal region, which Invalidate does not take either. Recommended and done: a
// bad token. The region stays registered.
TEST_P(NdkConformance, Case086_TokenOfANormalRegionIsABadOne) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  RegisteredMemory region(pair.far_session, kPage, kMrRemoteRead);
  region.memory.SetText(0, "registered");
  ExpectTokenEndsTheConnection(pair.near_session, pair.far_session, region.remote_token());
  ExpectCompletion(probe.PeerReads(kBase, 10, region.remote_token()), NtStatus::kSuccess);
  EXPECT_EQ(probe.peer_memory().Text(0, 10), "registered");
}

// Row 86, likewise of the privileged token: no peer can end it.
TEST_P(NdkConformance, Case086_PrivilegedTokenIsABadOne) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  TestMemory memory(pair.far_session, kPage);
  memory.SetText(0, "privileged");
  const uint32_t privileged = PrivilegedToken(pair.far_session);
  ExpectTokenEndsTheConnection(pair.near_session, pair.far_session, privileged);
  ExpectCompletion(probe.OwnerWrites({Sge(memory.Pages(0, 1).front(), 10, privileged)}), NtStatus::kSuccess);
  EXPECT_EQ(probe.peer_memory().Text(0, 10), "privileged");
}

}  // namespace
}  // namespace rnicd::test
