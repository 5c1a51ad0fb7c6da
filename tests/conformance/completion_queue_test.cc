// Group I of the edge cases, second half: the content of completions, fetching them, and the adapter's versions.
// Notifications and overruns are in arm_test.cc.
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/queue_steps.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

// Row 140. NDK: as many results come as are asked for or are there, oldest first, and each once. NDK is silent on
// asking for none; here none come and none is lost.
TEST_P(NdkConformance, Case140_ResultsComeInPortions) {
  ConnectedPair pair(daemon());
  TestSession& session = pair.near_session;
  const uint64_t cq = pair.near.initiator_cq_id();
  EXPECT_EQ(Results(session, cq, 8).response.results_size(), 0);
  QueueUp(session, cq, 1, 5);
  EXPECT_EQ(Results(session, cq, 0).response.results_size(), 0);
  EXPECT_EQ(ResultsEx(session, cq, 0).response.results_size(), 0);
  const auto two = Results(session, cq, 2);
  ExpectOk(two);
  ASSERT_EQ(two.response.results_size(), 2);
  EXPECT_EQ(two.response.results(0).request_context(), 1u);
  EXPECT_EQ(two.response.results(0).qp_context(), QueueOptions().qp_context);
  EXPECT_EQ(two.response.results(0).ntstatus(), static_cast<uint32_t>(NtStatus::kCancelled));
  EXPECT_EQ(two.response.results(1).request_context(), 2u);
  const auto three = ResultsEx(session, cq, 100);
  ExpectOk(three);
  ASSERT_EQ(three.response.results_size(), 3);
  for (int index = 0; index < 3; ++index) {
    ExpectCompletion(three.response.results(index), NtStatus::kCancelled, static_cast<uint64_t>(index) + 3);
    EXPECT_EQ(three.response.results(index).result().qp_context(), QueueOptions().qp_context);
  }
  EXPECT_EQ(Results(session, cq, 100).response.results_size(), 0);
  EXPECT_EQ(ResultsEx(session, cq, 100).response.results_size(), 0);
}

// Row 141. NDK: BytesTransferred counts for receives and is undefined elsewhere; so it is asserted for receives only.
TEST_P(NdkConformance, Case141_BytesTransferredAreThoseOfTheReceive) {
  ConnectedPair pair(daemon());
  RegisteredMemory far(pair.far_session, kPage, kMrLocalWrite);
  for (const uint32_t length : {0u, 1u, 5u, 64u}) {
    SCOPED_TRACE(length);
    pair.far.MustPost({ReceiveRequest({far.Piece(0, 3), far.Piece(3, 61)})});
    pair.near.MustRun(SendRequest({InlineSge(std::string(length, 'b'))}, kInline));
    const v1::CqResultEx received = pair.far.NextReceive();
    ExpectCompletion(received, NtStatus::kSuccess);
    EXPECT_EQ(received.result().bytes_transferred(), length);
  }
}

// Row 141. NDK: the type-specific output belongs to the type 0x8001, where it is the invalidated token.
TEST_P(NdkConformance, Case141_InvalidatedTokenRidesWithTheReceive) {
  ConnectedPair pair(daemon());
  TestMemory pages(pair.far_session, kPage);
  const uint64_t mr = FastRegion(pair.far_session, 1);
  pair.far.MustRun(FastRegisterRequest(mr, pages.Pages(0, 1), kPage, kBase, v1::OP_FLAG_ALLOW_REMOTE_READ));
  const uint32_t token = pair.far_session.RemoteToken(mr).response.remote_token();
  RegisteredMemory buffer(pair.far_session, kPage, kMrLocalWrite);
  pair.far.MustPost({ReceiveRequest({buffer.Piece(0, 16)}, 141)});
  const v1::CqResultEx sent = pair.near.Run(SendAndInvalidateRequest({InlineSge("bye")}, token, kInline));
  ExpectCompletion(sent, NtStatus::kSuccess);
  EXPECT_EQ(sent.type(), v1::OPERATION_TYPE_SEND);
  const v1::CqResultEx received = pair.far.NextReceive();
  ExpectCompletion(received, NtStatus::kSuccess, 141);
  EXPECT_EQ(received.type(), v1::OPERATION_TYPE_RECEIVE_AND_INVALIDATE);
  EXPECT_EQ(received.type_specific_completion_output(), token);
  EXPECT_EQ(received.result().bytes_transferred(), 3u);
}

// Row 142. NDK: ProviderErrorCode is 0 on success, for every type of request. What a provider puts there when a
// request fails is its own.
TEST_P(NdkConformance, Case142_NoProviderErrorCodeOnSuccess) {
  ConnectedPair pair(daemon());
  RegisteredMemory near(pair.near_session, kPage, kMrSink);
  RegisteredMemory far(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
  TestMemory pages(pair.near_session, kPage);
  const uint64_t fast = FastRegion(pair.near_session, 1);
  const uint64_t window = CreateMw(pair.near_session);
  const uint32_t remote_read = v1::OP_FLAG_ALLOW_REMOTE_READ;
  const std::vector<std::pair<v1::WorkRequest, v1::OperationType>> requests = {
      {SendRequest({near.Piece(0, 4)}), v1::OPERATION_TYPE_SEND},
      {ReadRequest({near.Piece(0, 4)}, kBase, far.remote_token()), v1::OPERATION_TYPE_READ},
      {WriteRequest({near.Piece(0, 4)}, kBase, far.remote_token()), v1::OPERATION_TYPE_WRITE},
      {FastRegisterRequest(fast, pages.Pages(0, 1), kPage, kBase, remote_read), v1::OPERATION_TYPE_FAST_REGISTER},
      {InvalidateMrRequest(fast), v1::OPERATION_TYPE_INVALIDATE},
      {BindRequest(near.mr_id, window, kBase, kPage, remote_read), v1::OPERATION_TYPE_BIND},
      {InvalidateMwRequest(window), v1::OPERATION_TYPE_INVALIDATE},
  };
  pair.far.MustPost({ReceiveRequest({far.Piece(8, 4)})});
  for (const auto& [request, type] : requests) {
    SCOPED_TRACE(v1::OperationType_Name(type));
    const v1::CqResultEx completion = pair.near.Run(request);
    ExpectCompletion(completion, NtStatus::kSuccess);
    EXPECT_EQ(completion.type(), type);
    EXPECT_EQ(completion.provider_error_code(), 0u);
  }
  const v1::CqResultEx received = pair.far.NextReceive();
  ExpectCompletion(received, NtStatus::kSuccess);
  EXPECT_EQ(received.type(), v1::OPERATION_TYPE_RECEIVE);
  EXPECT_EQ(received.provider_error_code(), 0u);
}

// Row 143. NDK states no order; user mode says posting order for each queue. Reads that take long stand between
// requests that are over at once, and the contexts are in no order of their own.
TEST_P(NdkConformance, Case143_CompletionsComeInPostingOrder) {
  ConnectedPair pair(daemon_with(HoldableReadsFlags()));
  RegisteredMemory near(pair.near_session, kPage, kMrSink);
  RegisteredMemory far(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
  TestMemory pages(pair.near_session, kPage);
  const uint64_t mr = FastRegion(pair.near_session, 1);
  const uint32_t token = far.remote_token();
  pair.far.MustPost({ReceiveRequest({far.Piece(0, 8)}, 502), ReceiveRequest({far.Piece(8, 8)}, 501),
                     ReceiveRequest({far.Piece(16, 8)}, 503)});
  const std::vector<v1::WorkRequest> chain = {
      ReadRequest({near.Piece(0, 8)}, kBase + 64, token, 0, 70),
      SendRequest({InlineSge("one")}, kInline, 3),
      Tick(900),
      ReadRequest({near.Piece(8, 8)}, kBase + 64, token, 0, 12),
      FastRegisterRequest(mr, pages.Pages(0, 1), kPage, kBase, v1::OP_FLAG_ALLOW_LOCAL_WRITE, 0, 44),
      SendRequest({InlineSge("two")}, kInline, 8),
      InvalidateMrRequest(mr, 0, 1000),
      ReadRequest({near.Piece(16, 8)}, kBase + 64, token, 0, 5),
      SendRequest({InlineSge("three")}, kInline, 41),
  };
  HeldReads held;
  pair.near.MustPost(chain);
  held.LetGo();
  for (const v1::WorkRequest& request : chain) {
    ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, request.request_context());
  }
  for (const uint64_t context : {502, 501, 503}) {
    ExpectCompletion(pair.far.NextReceive(), NtStatus::kSuccess, context);
  }
  EXPECT_EQ(far.memory.Text(0, 3), "one");
  EXPECT_EQ(far.memory.Text(8, 3), "two");
  EXPECT_EQ(far.memory.Text(16, 5), "three");
}

// Row 144. NDK is silent on a resize below what is queued. Recommended: BUFFER_OVERFLOW, and the queue is unchanged:
// it still has the depth and the entries it had.
TEST_P(NdkConformance, Case144_ResizeBelowTheBacklogChangesNothing) {
  ConnectedPair pair(daemon(), {.cq_depth = 8});
  const uint64_t cq = pair.near.initiator_cq_id();
  QueueUp(pair.near_session, cq, 1, 5);
  ExpectRefused(Resize(pair.near_session, cq, 4), ErrorReason::CQ_BACKLOG, "cq_depth");
  QueueUp(pair.near_session, cq, 6, 8);
  for (uint64_t context = 1; context <= 8; ++context) {
    ExpectCompletion(pair.near.NextInitiator(), NtStatus::kCancelled, context);
  }
}

// Row 144: the backlog itself is enough room, and what is queued stays.
TEST_P(NdkConformance, Case144_ResizeToTheBacklogKeepsIt) {
  ConnectedPair pair(daemon(), {.cq_depth = 8});
  const uint64_t cq = pair.near.initiator_cq_id();
  QueueUp(pair.near_session, cq, 1, 5);
  ExpectOk(Resize(pair.near_session, cq, 5));
  ExpectOk(Resize(pair.near_session, cq, 6));
  QueueUp(pair.near_session, cq, 6, 6);
  for (uint64_t context = 1; context <= 6; ++context) {
    ExpectCompletion(pair.near.NextInitiator(), NtStatus::kCancelled, context);
  }
}

CallResult<v1::OpenAdapterResponse> OpenAt(TestSession& session, uint32_t major, uint32_t minor) {
  v1::OpenAdapterRequest request;
  request.mutable_version()->set_major(major);
  request.mutable_version()->set_minor(minor);
  return session.Call(&AdapterStub::OpenAdapter, request);
}

// Row 146. NDK: the consumer names a major and the lowest minor it accepts. A minor up to the provider's highest
// succeeds, and the provider reports its own highest, in the answer and in the adapter's information.
TEST_P(NdkConformance, Case146_OpenReportsTheProvidersHighestMinor) {
  TestSession session(daemon());
  for (const uint32_t minor : {0u, 1u, 2u}) {
    const auto opened = OpenAt(session, 1, minor);
    ExpectOk(opened);
    EXPECT_EQ(opened.response.version().major(), 1u);
    EXPECT_EQ(opened.response.version().minor(), 2u);
    v1::QueryAdapterInfoRequest query;
    query.set_adapter_id(opened.response.adapter_id());
    const auto info = session.Call(&AdapterStub::QueryAdapterInfo, query);
    ExpectOk(info);
    EXPECT_EQ(info.response.info().version().major(), 1u);
    EXPECT_EQ(info.response.info().version().minor(), 2u);
  }
}

// Row 146. NDK: a minor above the highest, or another major, is BAD_VERSION.
TEST_P(NdkConformance, Case146_OtherVersionsAreRefused) {
  TestSession session(daemon());
  const std::pair<uint32_t, uint32_t> versions[] = {{1, 3}, {9, 0}, {2, 0}, {0, 0}, {0, 1}};
  for (const auto& [major, minor] : versions) {
    SCOPED_TRACE(std::to_string(major) + "." + std::to_string(minor));
    ExpectRefused(OpenAt(session, major, minor), ErrorReason::NDK_VERSION_UNSUPPORTED, "version");
  }
}

}  // namespace
}  // namespace rnicd::test
