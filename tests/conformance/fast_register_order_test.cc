// Group E of the edge cases, second half: when a token becomes and ceases to be valid, and the order of requests on a
// queue.
#include <string>
#include <vector>

#include "tests/conformance/fast_scene.h"
#include "tests/conformance/ndk_conformance.h"

namespace rnicd::test {
namespace {

// The near side's receiver of a message from the far side with a remote token.
class TokenInbox {
 public:
  explicit TokenInbox(FastScene& scene) : queue_(scene.near()), memory_(scene.near_session(), kPage) {
    TestSession& session = scene.near_session();
    local_token_ =
        session.RegisterWhole(session.CreateMr(), memory_.id(), kPage, v1::MR_FLAG_ALLOW_LOCAL_WRITE).local_token();
  }
  void Post() { queue_.MustPost({ReceiveRequest({Sge(kBase, kDigits, local_token_)})}); }
  uint32_t Take(Where where = Where::current()) {
    EXPECT_EQ(queue_.NextReceive(where).result().ntstatus(), kStatusSuccess);
    return static_cast<uint32_t>(std::stoul("0" + memory_.Text(0, kDigits)));
  }
  // A Send whose payload is this token.
  static v1::WorkRequest Message(uint32_t token) {
    std::string digits = std::to_string(token);
    digits.insert(0, kDigits - digits.size(), '0');
    return SendRequest({InlineSge(digits)}, v1::OP_FLAG_INLINE);
  }

 private:
  static constexpr uint32_t kDigits = 10;

  TestQueue& queue_;
  TestMemory memory_;
  uint32_t local_token_ = 0;
};

// Row 64. NDK: STATUS_CONNECTION_INVALID and no completion on a queue pair that was never connected.
TEST_P(NdkConformance, Case064_QueuePairThatWasNeverConnectedTakesNone) {
  FastScene scene(daemon(), 1);
  TestQueue alone(scene.far_session());
  alone.ExpectPostRefused(scene.Request({0}, kPage, kBase, kOpRemoteRead), ErrorReason::QP_NOT_CONNECTED, "");
  // A connected queue pair can still register the region.
  scene.RegisterWhole(kOpRemoteRead);
}

// Row 64, after a disconnect.
TEST_P(NdkConformance, Case064_DisconnectedQueuePairTakesNone) {
  FastScene scene(daemon(), 1);
  TestQueue near(scene.near_session());
  TestQueue far(scene.far_session());
  ConnectPair(near, far);
  v1::DisconnectQpRequest disconnect;
  disconnect.set_qp_id(far.qp_id());
  ExpectOk(scene.far_session().Call(&QueueStub::DisconnectQp, disconnect));
  far.ExpectPostRefused(scene.Request({0}, kPage, kBase, kOpRemoteRead), ErrorReason::QP_NOT_CONNECTED, "");
  scene.RegisterWhole(kOpRemoteRead);
}

// Row 65. NDK: the remote token of a registration can be read as soon as the post has returned, before the request is
// complete. It is the one that works afterwards.
TEST_P(NdkConformance, Case065_RemoteTokenIsKnownBeforeTheCompletion) {
  FastScene scene(daemon(), 1);
  HoldBack(scene.far());
  const v1::PostResponse posted = scene.far().MustPost({scene.Request({0}, kPage, kBase, kOpRemoteRead)});
  ASSERT_EQ(posted.issued_tokens_size(), 1);
  EXPECT_EQ(posted.issued_tokens(0).request_index(), 0u);
  const uint32_t token = posted.issued_tokens(0).remote_token();
  EXPECT_NE(token, 0u);
  EXPECT_EQ(scene.far_session().RemoteToken(scene.mr()).response.remote_token(), token);
  EXPECT_TRUE(scene.far().DrainInitiator().empty()) << "the request was to be held back";
  Release(scene.near());
  EXPECT_EQ(scene.far().NextInitiator().result().ntstatus(), kStatusSuccess);
  EXPECT_EQ(scene.far_session().RemoteToken(scene.mr()).response.remote_token(), token);
  EXPECT_TRUE(scene.Read(kBase, token, kPage) == scene.Laid({0}, 0, kPage));
}

// Row 65, for a chain: each answer names the request of the chain that it belongs to.
TEST_P(NdkConformance, Case065_EveryTokenOfAChainNamesItsRequest) {
  FastScene scene(daemon(), 2);
  const uint64_t second = FastRegion(scene.far_session(), 1);
  const v1::PostResponse posted =
      scene.far().MustPost({ReceiveRequest({}), scene.Request({0}, kPage, kBase, kOpRemoteRead), SendRequest({}),
                            FastRegisterRequest(second, scene.memory().Pages(1, 1), kPage, kBase, kOpRemoteRead)});
  Release(scene.near());
  ASSERT_EQ(posted.issued_tokens_size(), 2);
  EXPECT_EQ(posted.issued_tokens(0).request_index(), 1u);
  EXPECT_EQ(posted.issued_tokens(1).request_index(), 3u);
  for (int count = 0; count < 3; ++count) {
    EXPECT_EQ(scene.far().NextInitiator().result().ntstatus(), kStatusSuccess);
  }
  EXPECT_TRUE(scene.Read(kBase, posted.issued_tokens(0).remote_token(), kPage) == scene.Laid({0}, 0, kPage));
  EXPECT_TRUE(scene.Read(kBase, posted.issued_tokens(1).remote_token(), kPage) == scene.Laid({1}, 0, kPage));
}

// Row 66. NDK's example of a chain: a FastRegister, and behind it the Send that tells the peer its token. When the
// message is there the token works. Both are queued before either can be executed.
TEST_P(NdkConformance, Case066_TokenWorksWhenTheMessageArrives) {
  FastScene scene(daemon(), 1);
  TokenInbox inbox(scene);
  HoldBack(scene.far());
  const v1::PostResponse posted = scene.far().MustPost({scene.Request({0}, kPage, kBase, kOpEveryRight)});
  ASSERT_EQ(posted.issued_tokens_size(), 1);
  scene.far().MustPost({TokenInbox::Message(posted.issued_tokens(0).remote_token())});
  Release(scene.near());
  EXPECT_EQ(scene.near().NextReceive().result().ntstatus(), kStatusSuccess);
  inbox.Post();
  const uint32_t token = inbox.Take();
  scene.Write("as the message said", kBase + 9, token);
  EXPECT_EQ(scene.memory().Text(9, 19), "as the message said");
}

// Row 67. NDK is silent on a peer that uses the token before the request is executed. Recommended: an access error.
// The peer does it over another connection, so that the request is still executed afterwards.
TEST_P(NdkConformance, Case067_TokenDoesNotWorkBeforeTheRequestIsExecuted) {
  FastScene scene(daemon(), 1);
  const std::string before = scene.memory().Text(0, kPage);
  HoldBack(scene.far());
  const v1::PostResponse posted = scene.far().MustPost({scene.Request({0}, kPage, kBase, kOpEveryRight)});
  ASSERT_EQ(posted.issued_tokens_size(), 1);
  const uint32_t token = posted.issued_tokens(0).remote_token();
  EXPECT_EQ(scene.ReadStatus(kBase, token, 1), kStatusAccessViolation);
  EXPECT_EQ(scene.WriteStatus("early", kBase, token), kStatusAccessViolation);
  EXPECT_TRUE(scene.memory().Text(0, kPage) == before);
  Release(scene.near());
  EXPECT_EQ(scene.far().NextInitiator().result().ntstatus(), kStatusSuccess);
  scene.Write("now", kBase, token);
  EXPECT_EQ(scene.memory().Text(0, 3), "now");
}

// Row 67, over the connection itself: the early access ends it, and the request behind is never executed.
TEST_P(NdkConformance, Case067_EarlyAccessOverTheSameConnectionEndsIt) {
  FastScene scene(daemon(), 1);
  HoldBack(scene.far());
  const v1::PostResponse posted = scene.far().MustPost({scene.Request({0}, kPage, kBase, kOpEveryRight, 0, 67)});
  ASSERT_EQ(posted.issued_tokens_size(), 1);
  const uint32_t token = posted.issued_tokens(0).remote_token();
  EXPECT_EQ(scene.near().Run(InlineWriteRequest("early", kBase, token)).result().ntstatus(), kStatusAccessViolation);
  // The Send that blocked it, although silent, and the request itself.
  EXPECT_EQ(scene.far().NextInitiator().result().ntstatus(), kStatusCancelled);
  const v1::CqResultEx completion = scene.far().NextInitiator();
  EXPECT_EQ(completion.result().ntstatus(), kStatusCancelled);
  EXPECT_EQ(completion.result().request_context(), 67u);
  EXPECT_EQ(completion.type(), v1::OPERATION_TYPE_FAST_REGISTER);
  EXPECT_EQ(scene.ReadStatus(kBase, token, 1), kStatusAccessViolation);
}

// Row 68. NDK has no rule on whether the token changes; only the current value must work.
TEST_P(NdkConformance, Case068_CurrentTokenWorksAfterEachRegistration) {
  FastScene scene(daemon(), 2);
  for (const size_t page : {size_t{0}, size_t{1}, size_t{0}}) {
    const v1::PostResponse posted = scene.far().MustPost({scene.Request({page}, kPage, kBase, kOpRemoteRead)});
    EXPECT_EQ(scene.far().NextInitiator().result().ntstatus(), kStatusSuccess);
    ASSERT_EQ(posted.issued_tokens_size(), 1);
    const uint32_t token = scene.far_session().RemoteToken(scene.mr()).response.remote_token();
    EXPECT_EQ(posted.issued_tokens(0).remote_token(), token);
    EXPECT_TRUE(scene.Read(kBase, token, kPage) == scene.Laid({page}, 0, kPage));
    scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  }
}

// Row 68. Chosen: the remote token changes with each registration, so that a stale one does not reach the new pages.
// The local token, which never leaves its owner, stays.
TEST_P(NdkConformance, Case068_StaleTokenDoesNotReachTheNewPages) {
  FastScene scene(daemon(), 2);
  const uint32_t first = scene.Register({0}, kPage, kBase, kOpEveryRight);
  scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  const uint32_t second = scene.Register({1}, kPage, kBase, kOpEveryRight);
  EXPECT_NE(second, first);
  EXPECT_EQ(scene.WriteStatus("stale", kBase, first), kStatusAccessViolation);
  EXPECT_TRUE(scene.Read(kBase, second, kPage) == scene.Laid({1}, 0, kPage));
  EXPECT_EQ(scene.far_session().LocalToken(scene.mr()).response.local_token(), scene.local_token());
}

// Row 69. NDK is silent on a region that is still registered. Recommended: that is known when the request is executed
// and not before, so it completes with STATUS_INVALID_DEVICE_REQUEST. The registration stays what it was.
TEST_P(NdkConformance, Case069_RegisteredRegionFailsAtExecution) {
  FastScene scene(daemon(), 2);
  const uint32_t token = scene.Register({0}, kPage, kBase, kOpRemoteRead);
  const v1::CqResultEx completion = scene.far().Run(scene.Request({1}, kPage, kBase, kOpRemoteRead, 0, 69));
  EXPECT_EQ(completion.result().ntstatus(), kStatusInvalidDeviceRequest);
  EXPECT_EQ(completion.result().request_context(), 69u);
  EXPECT_EQ(completion.type(), v1::OPERATION_TYPE_FAST_REGISTER);
  EXPECT_EQ(scene.far().Query().state(), v1::QP_STATE_ERROR);
  EXPECT_EQ(scene.ReadStatus(kBase, token, kPage), kStatusSuccess);
}

// Row 69, in a chain: the state of a region is that which the requests before have left. The second registration
// fails, and what is queued behind it is cancelled.
TEST_P(NdkConformance, Case069_SecondRegistrationInAChainFailsAndCancelsTheRest) {
  FastScene scene(daemon(), 1);
  scene.far().MustPost({scene.Request({0}, kPage, kBase, kOpRemoteRead, 0, 1),
                        scene.Request({0}, kPage, kBase, kOpRemoteRead, 0, 2), InvalidateMrRequest(scene.mr(), 0, 3),
                        scene.Request({0}, kPage, kBase, kOpRemoteRead, 0, 4)});
  const std::vector<uint32_t> expected = {kStatusSuccess, kStatusInvalidDeviceRequest, kStatusCancelled,
                                          kStatusCancelled};
  for (uint64_t context = 1; context <= expected.size(); ++context) {
    const v1::CqResultEx completion = scene.far().NextInitiator();
    EXPECT_EQ(completion.result().request_context(), context);
    EXPECT_EQ(completion.result().ntstatus(), expected[context - 1]) << "request " << context;
  }
}

// Row 70. One ordered queue: an Invalidate and the next FastRegister in one chain both succeed.
TEST_P(NdkConformance, Case070_InvalidateAndRegisterInOneChain) {
  FastScene scene(daemon(), 3);
  scene.Register({0}, kPage, kBase, kOpRemoteRead);
  const v1::PostResponse posted = scene.far().MustPost(
      {InvalidateMrRequest(scene.mr(), 0, 1), scene.Request({1}, kPage, kBase, kOpRemoteRead, 0, 2),
       InvalidateMrRequest(scene.mr(), 0, 3), scene.Request({2, 1}, 2 * kPage, kBase, kOpRemoteRead, 0, 4)});
  const std::vector<v1::OperationType> types = {v1::OPERATION_TYPE_INVALIDATE, v1::OPERATION_TYPE_FAST_REGISTER,
                                                v1::OPERATION_TYPE_INVALIDATE, v1::OPERATION_TYPE_FAST_REGISTER};
  for (uint64_t context = 1; context <= types.size(); ++context) {
    const v1::CqResultEx completion = scene.far().NextInitiator();
    EXPECT_EQ(completion.result().request_context(), context);
    EXPECT_EQ(completion.result().ntstatus(), kStatusSuccess);
    EXPECT_EQ(completion.type(), types[context - 1]);
  }
  ASSERT_EQ(posted.issued_tokens_size(), 2);
  EXPECT_TRUE(scene.Read(kBase, posted.issued_tokens(1).remote_token(), 2 * kPage) == scene.Laid({2, 1}, 0, 2 * kPage));
  EXPECT_EQ(scene.ReadStatus(kBase, posted.issued_tokens(0).remote_token(), 1), kStatusAccessViolation);
}

// Row 73. NDK's rule allows to release the mapping once the FastRegister is complete, while peers can still reach the
// pages. Recommended: they stay mapped, and charged, until the registration is invalidated.
TEST_P(NdkConformance, Case073_PagesOutliveTheirMapping) {
  FastScene scene(daemon(), 2);
  TestSession& owner = scene.far_session();
  const std::vector<uint64_t> pages = scene.memory().Pages(0, 2);
  const uint32_t token = scene.RegisterWhole(kOpEveryRight);
  v1::ReleaseLamRequest release;
  release.set_lam_id(scene.memory().lam().lam_id());
  ExpectOk(owner.Call(&MemoryStub::ReleaseLam, release));
  ExpectRefused(owner.Call(&MemoryStub::ReleaseLam, release), ErrorReason::OBJECT_NOT_FOUND, "lam_id");
  scene.Write("still there", kBase + kPage - 5, token);
  EXPECT_EQ(scene.memory().Text(kPage - 5, 11), "still there");
  EXPECT_EQ(owner.Use("pinned_bytes").used(), 2 * kPage);
  ExpectRefused(owner.Release(scene.memory().id()), ErrorReason::MEMORY_IN_USE, "memory_id");
  // Its addresses are invalid for new requests.
  scene.far().ExpectPostRefused(FastRegisterRequest(FastRegion(owner, 1), {pages[0]}, kPage, kBase, kOpRemoteRead),
                                ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "fast_register.adapter_page_array[0]");
  scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  EXPECT_EQ(owner.Use("pinned_bytes").used(), 0u);
  EXPECT_EQ(scene.WriteStatus("!", kBase, token), kStatusAccessViolation);
  ExpectOk(owner.Release(scene.memory().id()));
}

// Row 73, where two registrations hold the pages: the last of them lets go. A closed region has none.
TEST_P(NdkConformance, Case073_PagesStayUntilTheLastRegistrationIsGone) {
  FastScene scene(daemon(), 1);
  TestSession& owner = scene.far_session();
  const uint64_t second = FastRegion(owner, 1);
  scene.RegisterWhole(kOpRemoteRead);
  scene.far().MustRun(FastRegisterRequest(second, scene.memory().Pages(0, 1), kPage, kBase, kOpRemoteRead));
  const uint32_t token = owner.RemoteToken(second).response.remote_token();
  v1::ReleaseLamRequest release;
  release.set_lam_id(scene.memory().lam().lam_id());
  ExpectOk(owner.Call(&MemoryStub::ReleaseLam, release));
  scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  EXPECT_EQ(owner.Use("pinned_bytes").used(), kPage);
  EXPECT_TRUE(scene.Read(kBase, token, kPage) == scene.Laid({0}, 0, kPage));
  ExpectOk(owner.CloseMr(second));
  EXPECT_EQ(owner.Use("pinned_bytes").used(), 0u);
  EXPECT_EQ(scene.ReadStatus(kBase, token, 1), kStatusAccessViolation);
}

// Row 74. NDK: a silent request that succeeds has no completion, and is executed all the same.
TEST_P(NdkConformance, Case074_SilentSuccessHasNoCompletion) {
  FastScene scene(daemon(), 1);
  const v1::PostResponse posted = scene.far().MustPost(
      {scene.Request({0}, kPage, kBase, kOpRemoteRead | v1::OP_FLAG_SILENT_SUCCESS, 0, 1), SendRequest({}, 0, 2)});
  Release(scene.near());
  // A queue completes in order: a completion of the first request would precede the second's.
  const v1::CqResultEx completion = scene.far().NextInitiator();
  EXPECT_EQ(completion.result().request_context(), 2u);
  EXPECT_EQ(completion.type(), v1::OPERATION_TYPE_SEND);
  ASSERT_EQ(posted.issued_tokens_size(), 1);
  EXPECT_TRUE(scene.Read(kBase, posted.issued_tokens(0).remote_token(), kPage) == scene.Laid({0}, 0, kPage));
  EXPECT_TRUE(scene.far().DrainInitiator().empty());
}

// Row 74. NDK: a silent request that fails at execution has one.
TEST_P(NdkConformance, Case074_SilentFailureHasACompletion) {
  FastScene scene(daemon(), 1);
  scene.RegisterWhole(kOpRemoteRead);
  scene.far().MustPost({scene.Request({0}, kPage, kBase, kOpRemoteRead | v1::OP_FLAG_SILENT_SUCCESS, 0, 74)});
  const v1::CqResultEx completion = scene.far().NextInitiator();
  EXPECT_EQ(completion.result().ntstatus(), kStatusInvalidDeviceRequest);
  EXPECT_EQ(completion.result().request_context(), 74u);
  EXPECT_EQ(completion.type(), v1::OPERATION_TYPE_FAST_REGISTER);
}

// Row 74. A flush is a failure too.
TEST_P(NdkConformance, Case074_FlushedSilentRequestHasACompletion) {
  FastScene scene(daemon(), 1);
  HoldBack(scene.far());
  scene.far().MustPost({scene.Request({0}, kPage, kBase, kOpRemoteRead | v1::OP_FLAG_SILENT_SUCCESS, 0, 74)});
  v1::FlushRequest flush;
  flush.set_qp_id(scene.far().qp_id());
  ExpectOk(scene.far_session().Call(&QueueStub::Flush, flush));
  EXPECT_EQ(scene.far().NextInitiator().result().ntstatus(), kStatusCancelled);
  const v1::CqResultEx completion = scene.far().NextInitiator();
  EXPECT_EQ(completion.result().ntstatus(), kStatusCancelled);
  EXPECT_EQ(completion.result().request_context(), 74u);
  const uint32_t token = scene.far_session().RemoteToken(scene.mr()).response.remote_token();
  EXPECT_EQ(scene.ReadStatus(kBase, token, 1), kStatusAccessViolation);
}

}  // namespace
}  // namespace rnicd::test
