// Group H of the edge cases, second part: the limits of a queue, a queue pair and a request.
#include <limits>
#include <string>
#include <vector>

#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/queue_steps.h"

namespace rnicd::test {
namespace {

// One of the five limits of CreateQp: its field, and the adapter's maximum for it.
struct QpLimit {
  const char* field;
  void (v1::CreateQpRequest::*set)(uint32_t);
  uint32_t (v1::NdkAdapterInfo::*maximum)() const;
};
constexpr QpLimit kQpLimits[] = {
    {"receive_queue_depth", &v1::CreateQpRequest::set_receive_queue_depth,
     &v1::NdkAdapterInfo::max_receive_queue_depth},
    {"initiator_queue_depth", &v1::CreateQpRequest::set_initiator_queue_depth,
     &v1::NdkAdapterInfo::max_initiator_queue_depth},
    {"max_receive_request_sge", &v1::CreateQpRequest::set_max_receive_request_sge,
     &v1::NdkAdapterInfo::max_receive_request_sge},
    {"max_initiator_request_sge", &v1::CreateQpRequest::set_max_initiator_request_sge,
     &v1::NdkAdapterInfo::max_initiator_request_sge},
    {"inline_data_size", &v1::CreateQpRequest::set_inline_data_size, &v1::NdkAdapterInfo::max_inline_data_size},
};

// A request for a queue pair with all limits 0 and new completion queues.
v1::CreateQpRequest EmptyQp(TestSession& session) {
  v1::CreateQpRequest request;
  request.set_pd_id(session.pd_id());
  request.set_receive_cq_id(CreateCq(session, 16));
  request.set_initiator_cq_id(CreateCq(session, 16));
  return request;
}

CallResult<v1::CreateCqResponse> TryCreateCq(TestSession& session, uint32_t depth) {
  v1::CreateCqRequest request;
  request.set_adapter_id(session.adapter_id());
  request.set_cq_depth(depth);
  return session.Call(&QueueStub::CreateCq, request);
}

// `count` consecutive SGEs of one byte each.
std::vector<v1::Sge> Bytes(const RegisteredMemory& region, uint32_t count) {
  std::vector<v1::Sge> sges;
  sges.reserve(count);
  for (uint32_t index = 0; index < count; ++index) {
    sges.push_back(region.Piece(index, 1));
  }
  return sges;
}

// Row 114. NDK: each of the five limits works at the adapter's maximum; one more is STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case114_EachLimitOfAQueuePairEndsAtTheAdapters) {
  TestSession session(daemon());
  const v1::NdkAdapterInfo info = AdapterInfo(session);
  for (const QpLimit& limit : kQpLimits) {
    SCOPED_TRACE(limit.field);
    const uint32_t maximum = (info.*limit.maximum)();
    EXPECT_GT(maximum, 0u);
    v1::CreateQpRequest request = EmptyQp(session);
    (request.*limit.set)(maximum);
    ExpectOk(session.Call(&QueueStub::CreateQp, request));
    (request.*limit.set)(maximum + 1);
    ExpectRefused(session.Call(&QueueStub::CreateQp, request), ErrorReason::ABOVE_ADAPTER_LIMIT, limit.field);
  }
}

// Row 114: the maxima hold together as well.
TEST_P(NdkConformance, Case114_AllLimitsAtTheirMaximumAreOneQueuePair) {
  TestSession session(daemon());
  const v1::NdkAdapterInfo info = AdapterInfo(session);
  v1::CreateQpRequest request = EmptyQp(session);
  for (const QpLimit& limit : kQpLimits) {
    (request.*limit.set)((info.*limit.maximum)());
  }
  const auto created = session.Call(&QueueStub::CreateQp, request);
  ExpectOk(created);
  EXPECT_NE(created.response.qp_id(), 0u);
}

// Row 115. NDK: MaxCqDepth entries can be had, at the start and by a resize; one more is STATUS_INVALID_PARAMETER. NDK
// is silent on a queue of no entries; here it is refused likewise.
TEST_P(NdkConformance, Case115_CompletionQueueEndsAtTheAdaptersDepth) {
  TestSession session(daemon());
  const uint32_t maximum = AdapterInfo(session).max_cq_depth();
  const auto created = TryCreateCq(session, maximum);
  ExpectOk(created);
  ExpectRefused(TryCreateCq(session, maximum + 1), ErrorReason::ABOVE_ADAPTER_LIMIT, "cq_depth");
  ExpectRefused(Resize(session, created.response.cq_id(), maximum + 1), ErrorReason::ABOVE_ADAPTER_LIMIT, "cq_depth");
  ExpectRefused(TryCreateCq(session, 0), ErrorReason::FIELD_OUT_OF_RANGE, "cq_depth");
  ExpectRefused(Resize(session, created.response.cq_id(), 0), ErrorReason::FIELD_OUT_OF_RANGE, "cq_depth");
  ExpectOk(Resize(session, created.response.cq_id(), 1));
  ExpectOk(Resize(session, created.response.cq_id(), maximum));
}

// Row 115, where the adapter flag CQ_RESIZE is clear. NDK: the consumer must not resize.
TEST_P(NdkConformance, Case115_ResizeIsRefusedWhereTheAdapterCannot) {
  TestSession session(daemon_with(AdapterFlagsWithout(kAdapterCqResize)));
  ASSERT_EQ(AdapterInfo(session).adapter_flags() & kAdapterCqResize, 0u);
  ExpectRefused(Resize(session, CreateCq(session, 16), 32), ErrorReason::DEVICE_NOT_CAPABLE);
}

// Row 116. NDK names no code for a full initiator queue. Recommended: NO_MORE_ENTRIES. What stands in the queue is not
// touched by the refusal, and a request that completes makes room.
TEST_P(NdkConformance, Case116_FullInitiatorQueueTakesNoMore) {
  ConnectedPair pair(daemon(), {.initiator_queue_depth = 4});
  std::vector<v1::WorkRequest> chain;
  for (uint64_t context = 1; context <= 6; ++context) {
    chain.push_back(SendRequest({}, 0, context));
  }
  const auto posted = pair.near.Post(chain);
  ExpectOk(posted);
  EXPECT_EQ(posted.response.posted(), 4u);
  ExpectRefused(posted.response.failure(), ErrorReason::QUEUE_FULL, "requests[4]");
  pair.near.ExpectPostRefused(SendRequest({}), ErrorReason::QUEUE_FULL, "");
  pair.far.MustPost({ReceiveRequest({}), ReceiveRequest({}), ReceiveRequest({}), ReceiveRequest({})});
  for (uint64_t context = 1; context <= 4; ++context) {
    ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, context);
  }
  EXPECT_TRUE(pair.near.DrainInitiator().empty());
  pair.near.MustRun(Tick(7));
}

// Row 116: a silent request takes its place as any other.
TEST_P(NdkConformance, Case116_SilentRequestsFillTheQueueToo) {
  ConnectedPair pair(daemon(), {.initiator_queue_depth = 3});
  pair.near.MustPost({SendRequest({}, kSilent), Tick(2, kSilent), Tick(3, kSilent)});
  pair.near.ExpectPostRefused(Tick(), ErrorReason::QUEUE_FULL, "");
  pair.far.MustPost({ReceiveRequest({})});
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kSuccess);
  // All three have completed, without completions because they are silent.
  EXPECT_TRUE(Eventually([&] { return pair.near.Post({Tick(4)}).response.posted() == 1; }));
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, 4);
  EXPECT_TRUE(pair.near.DrainInitiator().empty());
}

// Row 116, for receives. The two queues are apart: a full one does not hinder the other.
TEST_P(NdkConformance, Case116_FullReceiveQueueTakesNoMore) {
  ConnectedPair pair(daemon(), {.receive_queue_depth = 2});
  pair.near.MustPost({ReceiveRequest({}, 1), ReceiveRequest({}, 2)});
  pair.near.ExpectPostRefused(ReceiveRequest({}), ErrorReason::QUEUE_FULL, "");
  pair.near.MustRun(Tick());
  pair.far.MustRun(SendRequest({}));
  ExpectCompletion(pair.near.NextReceive(), NtStatus::kSuccess, 1);
  pair.near.MustPost({ReceiveRequest({}, 3)});
  pair.near.ExpectPostRefused(ReceiveRequest({}), ErrorReason::QUEUE_FULL, "");
}

// Row 117. NDK limits the SGEs of a request and names no code. Recommended: DATA_OVERRUN.
TEST_P(NdkConformance, Case117_MoreSgesThanTheQueuePairTakesAreRefused) {
  ConnectedPair pair(daemon(), {.max_receive_request_sge = 2, .max_initiator_request_sge = 3});
  RegisteredMemory near(pair.near_session, kPage, kMrLocalWrite);
  RegisteredMemory far(pair.far_session, kPage, kMrRemoteWrite);
  near.memory.SetText(0, "abcd");
  const uint32_t token = far.remote_token();
  pair.near.ExpectPostRefused(SendRequest(Bytes(near, 4)), ErrorReason::SGE_COUNT, "send.sges");
  pair.near.ExpectPostRefused(SendAndInvalidateRequest(Bytes(near, 4), token), ErrorReason::SGE_COUNT,
                              "send_and_invalidate.sges");
  pair.near.ExpectPostRefused(WriteRequest(Bytes(near, 4), kBase, token), ErrorReason::SGE_COUNT, "write.sges");
  pair.near.ExpectPostRefused(ReceiveRequest(Bytes(near, 3)), ErrorReason::SGE_COUNT, "receive.sges");
  pair.near.MustRun(WriteRequest(Bytes(near, 3), kBase, token));
  EXPECT_EQ(far.memory.Text(0, 4), std::string("abc\0", 4));
}

// Row 117. NDK: reads have a limit of the adapter's of their own, which overrides that of the queue pair.
TEST_P(NdkConformance, Case117_ReadsHaveTheAdaptersLimit) {
  ConnectedPair pair(daemon(), {.max_initiator_request_sge = 1});
  const uint32_t maximum = AdapterInfo(pair.near_session).max_read_request_sge();
  ASSERT_GT(maximum, 1u);
  RegisteredMemory sink(pair.near_session, kPage, kMrSink);
  RegisteredMemory source(pair.far_session, kPage, kMrRemoteRead);
  source.memory.SetText(0, std::string(maximum + 1, 's'));
  pair.near.ExpectPostRefused(ReadRequest(Bytes(sink, maximum + 1), kBase, source.remote_token()),
                              ErrorReason::SGE_COUNT, "read.sges");
  pair.near.MustRun(ReadRequest(Bytes(sink, maximum), kBase, source.remote_token()));
  EXPECT_EQ(sink.memory.Text(0, maximum + 1), std::string(maximum, 's') + '\0');
}

// Row 118. NDK is silent on a request without SGEs. Recommended: a transfer of no bytes.
TEST_P(NdkConformance, Case118_SendWithoutSgesArrives) {
  ConnectedPair pair(daemon());
  pair.far.MustPost({ReceiveRequest({}, 118)});
  pair.near.MustRun(SendRequest({}));
  const v1::CqResultEx received = pair.far.NextReceive();
  ExpectCompletion(received, NtStatus::kSuccess, 118);
  EXPECT_EQ(received.result().bytes_transferred(), 0u);
}

// Row 118, for reads and writes: nothing is transferred, so the token is not looked at. A length of 0 is the same.
TEST_P(NdkConformance, Case118_ReadAndWriteOfNoBytesTouchNothing) {
  ConnectedPair pair(daemon());
  RegisteredMemory near(pair.near_session, kPage, kMrLocalWrite);
  for (const uint32_t token : {0u, 0xdead'beefu}) {
    pair.near.MustRun(ReadRequest({}, kBase, token));
    pair.near.MustRun(WriteRequest({}, kBase, token));
    pair.near.MustRun(ReadRequest({near.Piece(0, 0)}, kBase, token));
    pair.near.MustRun(WriteRequest({near.Piece(0, 0), near.Piece(8, 0)}, std::numeric_limits<uint64_t>::max(), token));
  }
  EXPECT_EQ(pair.far.Query().state(), v1::QP_STATE_READY_TO_SEND);
}

// Row 119. NDK limits the sum of a request's SGEs and names no code. Recommended: DATA_OVERRUN. The sum does not wrap
// at 32 bits.
TEST_P(NdkConformance, Case119_SumAboveTheTransferLengthIsRefused) {
  ConnectedPair pair(daemon());
  const uint32_t maximum = AdapterInfo(pair.near_session).max_transfer_length();
  ASSERT_GT(maximum, 1u);
  const std::vector<v1::Sge> one_more = {Sge(kBase, maximum, 1), Sge(kBase, 1, 1)};
  const uint32_t quarter = uint32_t{1} << 30;
  const std::vector<v1::Sge> wraps = {Sge(kBase, quarter, 1), Sge(kBase, quarter, 1), Sge(kBase, quarter, 1),
                                      Sge(kBase, quarter + 1, 1)};
  for (const std::vector<v1::Sge>& sges : {one_more, wraps}) {
    pair.near.ExpectPostRefused(SendRequest(sges), ErrorReason::TRANSFER_TOO_LONG, "send.sges");
    pair.near.ExpectPostRefused(SendAndInvalidateRequest(sges, 1), ErrorReason::TRANSFER_TOO_LONG,
                                "send_and_invalidate.sges");
    pair.near.ExpectPostRefused(ReceiveRequest(sges), ErrorReason::TRANSFER_TOO_LONG, "receive.sges");
    pair.near.ExpectPostRefused(ReadRequest(sges, kBase, 1), ErrorReason::TRANSFER_TOO_LONG, "read.sges");
    pair.near.ExpectPostRefused(WriteRequest(sges, kBase, 1), ErrorReason::TRANSFER_TOO_LONG, "write.sges");
  }
  pair.near.MustRun(Tick());
}

// Row 119: the adapter's maximum itself is not refused at once. The token is judged when the request is executed, so
// no such amount of memory is needed to see it.
TEST_P(NdkConformance, Case119_SumAtTheTransferLengthIsPosted) {
  ConnectedPair pair(daemon());
  const uint32_t maximum = AdapterInfo(pair.near_session).max_transfer_length();
  const v1::CqResultEx failed =
      pair.near.Run(WriteRequest({Sge(kBase, maximum - 1, 1), Sge(kBase, 1, 1)}, kBase, 1, 0, 119));
  ExpectCompletion(failed, NtStatus::kAccessViolation, 119);
}

}  // namespace
}  // namespace rnicd::test
