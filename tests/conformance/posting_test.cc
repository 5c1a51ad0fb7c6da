// Group H of the edge cases, third part: when requests may be posted, fences, deferred chains, concurrent threads.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/queue_steps.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

constexpr uint32_t kFence = v1::OP_FLAG_READ_FENCE;
constexpr uint32_t kDefer = v1::OP_FLAG_DEFER;

// Row 120. NDK asks for a connection of every request but a receive: one can be posted before.
TEST_P(NdkConformance, Case120_ReceiveIsPostedBeforeTheConnection) {
  TestSession near_session(daemon());
  TestSession far_session(daemon());
  TestQueue near(near_session);
  TestQueue far(far_session);
  RegisteredMemory buffer(near_session, kPage, kMrLocalWrite);
  near.MustPost({ReceiveRequest({buffer.Piece(0, 64)}, 120)});
  EXPECT_EQ(near.Query().state(), v1::QP_STATE_INIT);
  ConnectPair(near, far);
  far.MustRun(SendRequest({InlineSge("early")}, kInline));
  ExpectCompletion(near.NextReceive(), NtStatus::kSuccess, 120);
  EXPECT_EQ(buffer.memory.Text(0, 5), "early");
}

std::vector<v1::WorkRequest> RequestsThatNeedAConnection() {
  return {SendRequest({}), SendAndInvalidateRequest({}, 1), ReadRequest({}, kBase, 1), WriteRequest({}, kBase, 1)};
}

// Row 121. NDK: STATUS_CONNECTION_INVALID at once, and no completion.
TEST_P(NdkConformance, Case121_UnconnectedQueuePairSendsNothing) {
  TestSession session(daemon());
  TestQueue queue(session);
  for (const v1::WorkRequest& request : RequestsThatNeedAConnection()) {
    queue.ExpectPostRefused(request, ErrorReason::QP_NOT_CONNECTED, "");
  }
  const auto posted = queue.Post({ReceiveRequest({}), SendRequest({}), ReceiveRequest({})});
  ExpectOk(posted);
  EXPECT_EQ(posted.response.posted(), 1u);
  ExpectRefused(posted.response.failure(), ErrorReason::QP_NOT_CONNECTED, "requests[1]");
  EXPECT_TRUE(queue.DrainInitiator().empty());
  EXPECT_TRUE(queue.DrainReceive().empty());
}

// Row 121: likewise after the connection.
TEST_P(NdkConformance, Case121_DisconnectedQueuePairSendsNothing) {
  ConnectedPair pair(daemon());
  ExpectOk(Disconnect(pair.near));
  ExpectInError(pair.near);
  for (const v1::WorkRequest& request : RequestsThatNeedAConnection()) {
    pair.near.ExpectPostRefused(request, ErrorReason::QP_NOT_CONNECTED, "");
  }
  pair.near.MustPost({ReceiveRequest({}, 121)});
  ExpectCompletion(pair.near.NextReceive(), NtStatus::kCancelled, 121);
}

// Row 122. NDK lists one code as a return value and another for the completion; here the completion has
// STATUS_ACCESS_VIOLATION. Nothing beside the region is touched, and an address near the end of the 64-bit range does
// not wrap into it.
TEST_P(NdkConformance, Case122_AccessPastTheRemoteRegionFails) {
  const std::pair<uint64_t, uint32_t> ranges[] = {{kBase + kPage - 8, 16},
                                                  {kBase + kPage, 1},
                                                  {kBase - 1, 2},
                                                  {std::numeric_limits<uint64_t>::max() - 3, 16},
                                                  {0, 1}};
  for (const auto& [address, length] : ranges) {
    for (const bool write : {true, false}) {
      SCOPED_TRACE((write ? "write to " : "read from ") + std::to_string(address - kBase));
      ConnectedPair pair(daemon());
      RegisteredMemory own(pair.near_session, kPage, kMrSink);
      RegisteredMemory target(pair.far_session, 2 * kPage, kPage, kMrRemoteRead | kMrRemoteWrite);
      target.memory.SetText(kPage, "outside");
      own.memory.SetText(0, std::string(16, 'x'));
      const std::vector<v1::Sge> sges = {own.Piece(0, length)};
      ExpectCompletion(pair.near.Run(write ? WriteRequest(sges, address, target.remote_token())
                                           : ReadRequest(sges, address, target.remote_token())),
                       NtStatus::kAccessViolation);
      EXPECT_EQ(target.memory.Text(kPage, 7), "outside");
      EXPECT_EQ(own.memory.Text(0, length).find_first_of("outside"), std::string::npos);
      ExpectInError(pair.near);
      ExpectInError(pair.far);
    }
  }
}

// Row 122: the last byte is still inside.
TEST_P(NdkConformance, Case122_LastByteOfTheRemoteRegionCanBeReached) {
  ConnectedPair pair(daemon());
  RegisteredMemory own(pair.near_session, kPage, kMrSink);
  RegisteredMemory target(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
  pair.near.MustRun(InlineWriteRequest("z", kBase + kPage - 1, target.remote_token()));
  EXPECT_EQ(target.memory.Text(kPage - 1, 1), "z");
  pair.near.MustRun(ReadRequest({own.Piece(0, 1)}, kBase + kPage - 1, target.remote_token()));
  EXPECT_EQ(own.memory.Text(0, 1), "z");
}

// Row 123. NDK: a request with READ_FENCE starts only when the reads before it are finished. So a write and a send
// whose source is the sink of that read carry what the read has brought.
TEST_P(NdkConformance, Case123_FencedRequestsCarryWhatTheReadBrought) {
  ConnectedPair pair(daemon_with(HoldableReadsFlags()));
  RegisteredMemory sink(pair.near_session, kPage, kMrSink);
  RegisteredMemory far(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
  sink.memory.SetText(0, "stale");
  far.memory.SetText(0, "fresh");
  pair.far.MustPost({ReceiveRequest({far.Piece(200, 5)})});
  HeldReads held;
  pair.near.MustPost({ReadRequest({sink.Piece(0, 5)}, kBase, far.remote_token(), 0, 1),
                      WriteRequest({sink.Piece(0, 5)}, kBase + 100, far.remote_token(), kFence, 2),
                      SendRequest({sink.Piece(0, 5)}, kFence, 3)});
  held.LetGo();
  for (uint64_t context = 1; context <= 3; ++context) {
    ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, context);
  }
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kSuccess);
  EXPECT_EQ(far.memory.Text(100, 5), "fresh");
  EXPECT_EQ(far.memory.Text(200, 5), "fresh");
}

// Row 123, for FastRegister: a peer that can use the registration finds the read finished. Where the card decides when
// that is, it may be early enough to be refused or not.
TEST_P(NdkConformance, Case123_FencedFastRegisterTakesEffectAfterTheRead) {
  ConnectedPair pair(daemon_with(HoldableReadsFlags()));
  RegisteredMemory sink(pair.near_session, kPage, kMrSink);
  RegisteredMemory source(pair.far_session, kPage, kMrRemoteRead);
  TestMemory pages(pair.near_session, kPage);
  sink.memory.SetText(0, "stale");
  source.memory.SetText(0, "fresh");
  const uint64_t mr = FastRegion(pair.near_session, 1);
  WaitUntilConnected(pair.near);
  const v1::WorkRequest fenced =
      FastRegisterRequest(mr, pages.Pages(0, 1), kPage, kBase, v1::OP_FLAG_ALLOW_REMOTE_WRITE | kFence, 0, 2);
  // A refused access ends its connection, so each attempt uses a new one.
  TestQueue early_near(pair.near_session);
  TestQueue early_far(pair.far_session);
  ConnectPair(early_near, early_far);
  HeldReads held;
  const v1::PostResponse posted =
      pair.near.MustPost({ReadRequest({sink.Piece(0, 5)}, kBase, source.remote_token(), 0, 1), fenced});
  ASSERT_EQ(posted.issued_tokens_size(), 1);
  EXPECT_EQ(posted.issued_tokens(0).request_index(), 1u);
  const uint32_t token = posted.issued_tokens(0).remote_token();
  const v1::CqResultEx early = early_far.Run(InlineWriteRequest("early", kBase, token));
  if (early.result().ntstatus() == kStatusSuccess) {
    EXPECT_EQ(sink.memory.Text(0, 5), "fresh") << "the registration did not wait for the read";
  } else {
    ExpectCompletion(early, NtStatus::kAccessViolation);
  }
  held.LetGo();
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, 1);
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, 2);
  EXPECT_EQ(sink.memory.Text(0, 5), "fresh");
  TestQueue late_near(pair.near_session);
  TestQueue late_far(pair.far_session);
  ConnectPair(late_near, late_far);
  late_far.MustRun(InlineWriteRequest("later", kBase, token));
  EXPECT_EQ(pages.Text(0, 5), "later");
}

// Row 123, without the fence. NDK lets a request start at any time; the slow card imitated here starts it at once,
// which is what makes the tests above able to fail. Completions come in posting order all the same.
TEST_P(NdkConformance, Case123_UnfencedWriteMayOvertakeTheRead) {
  ASSERT_TRUE(CanHoldReads());
  ConnectedPair pair(daemon_with(HoldableReadsFlags()));
  RegisteredMemory sink(pair.near_session, kPage, kMrSink);
  RegisteredMemory far(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
  far.memory.SetText(0, "fresh");
  sink.memory.SetText(0, "stale");
  HeldReads held;
  pair.near.MustPost({ReadRequest({sink.Piece(0, 5)}, kBase, far.remote_token(), 0, 1),
                      InlineWriteRequest("behind", kBase + 100, far.remote_token(), 2)});
  EXPECT_TRUE(Eventually([&] { return far.memory.Text(100, 6) == "behind"; }))
      << "the write waits for the read though nothing asks it to";
  EXPECT_EQ(sink.memory.Text(0, 5), "stale");
  held.LetGo();
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, 1);
  EXPECT_EQ(sink.memory.Text(0, 5), "fresh");
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, 2);
}

// Row 124. NDK: DEFER is a hint. A chain that ends without it is executed as a whole; when it starts is not said.
TEST_P(NdkConformance, Case124_DeferredChainCompletesAsAWhole) {
  ConnectedPair pair(daemon());
  RegisteredMemory near(pair.near_session, kPage, kMrSink);
  RegisteredMemory far(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
  TestMemory pages(pair.near_session, kPage);
  const uint64_t mr = FastRegion(pair.near_session, 1);
  far.memory.SetText(0, "source");
  near.memory.SetText(100, "deferred");
  pair.far.MustPost({ReceiveRequest({far.Piece(200, 16)}), ReceiveRequest({far.Piece(300, 16)})});
  pair.near.MustPost({
      WriteRequest({near.Piece(100, 8)}, kBase + 100, far.remote_token(), kDefer, 1),
      SendRequest({InlineSge("first")}, kInline | kDefer, 2),
      FastRegisterRequest(mr, pages.Pages(0, 1), kPage, kBase, v1::OP_FLAG_ALLOW_REMOTE_READ | kDefer, 0, 3),
      InvalidateMrRequest(mr, kDefer, 4),
      ReadRequest({near.Piece(0, 6)}, kBase, far.remote_token(), kDefer, 5),
      SendRequest({InlineSge("last")}, kInline, 6),
  });
  for (uint64_t context = 1; context <= 6; ++context) {
    ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, context);
  }
  EXPECT_EQ(near.memory.Text(0, 6), "source");
  EXPECT_EQ(far.memory.Text(100, 8), "deferred");
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kSuccess);
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kSuccess);
  EXPECT_EQ(far.memory.Text(200, 5), "first");
  EXPECT_EQ(far.memory.Text(300, 4), "last");
}

// Row 125. NDK: when a request is refused at once, the deferred ones before it must run; the consumer posts nothing
// after it. In one chain, and as two calls.
TEST_P(NdkConformance, Case125_DeferredRequestRunsThoughTheNextIsRefused) {
  ConnectedPair pair(daemon());
  TestMemory pages(pair.near_session, kPage);
  const uint64_t registers = FastRegion(pair.near_session, 1);
  const uint64_t local_only = FastRegion(pair.near_session, 1, false);
  const uint32_t flags = v1::OP_FLAG_ALLOW_REMOTE_READ | kDefer;
  const v1::WorkRequest good = FastRegisterRequest(registers, pages.Pages(0, 1), kPage, kBase, flags, 0, 1);
  const v1::WorkRequest bad = FastRegisterRequest(local_only, pages.Pages(0, 1), kPage, kBase, flags, 0, 2);
  const auto posted = pair.near.Post({good, bad});
  ExpectOk(posted);
  EXPECT_EQ(posted.response.posted(), 1u);
  EXPECT_EQ(posted.response.issued_tokens_size(), 1);
  ExpectRefused(posted.response.failure(), ErrorReason::REGION_NO_REMOTE_ACCESS, "requests[1].flags");
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, 1);
  pair.near.MustRun(InvalidateMrRequest(registers));
  pair.near.MustPost({good});
  pair.near.ExpectPostRefused(bad, ErrorReason::REGION_NO_REMOTE_ACCESS, "flags");
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, 1);
  EXPECT_TRUE(pair.near.DrainInitiator().empty());
}

// Posts `count` requests one by one, with retries while the queue is full. False on timeout.
bool PostAll(TestQueue& queue, uint64_t count, const std::function<v1::WorkRequest(uint64_t)>& request) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  for (uint64_t context = 1; context <= count;) {
    const auto posted = queue.Post({request(context)});
    if (!ExpectOk(posted) || std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    if (posted.response.posted() == 1) {
      ++context;
    } else if (!ExpectRefused(posted.response.failure(), ErrorReason::QUEUE_FULL, "requests[0]")) {
      return false;
    }
  }
  return true;
}

// Row 127. NDK: a send and a receive may be posted at the same time. The queue pair is its own peer, so that both of
// its queues are busy on account of the other.
TEST_P(NdkConformance, Case127_SendsAndReceivesArePostedAtTheSameTime) {
  constexpr uint64_t kRequests = 300;
  TestSession session(daemon());
  TestQueue queue(session, {.cq_depth = 512, .receive_queue_depth = 16, .initiator_queue_depth = 16});
  ExpectOk(Connect(queue, queue.Query().address()));
  auto sends = std::async(std::launch::async, [&] {
    return PostAll(queue, kRequests, [](uint64_t context) { return SendRequest({}, 0, context); });
  });
  EXPECT_TRUE(PostAll(queue, kRequests, [](uint64_t context) { return ReceiveRequest({}, context); }));
  EXPECT_TRUE(sends.get());
  for (uint64_t context = 1; context <= kRequests && !HasFailure(); ++context) {
    ExpectCompletion(queue.NextInitiator(), NtStatus::kSuccess, context);
    ExpectCompletion(queue.NextReceive(), NtStatus::kSuccess, context);
  }
}

// Row 127. NDK: a flush may come while a request is being posted. Each request is then refused, or completes once.
TEST_P(NdkConformance, Case127_FlushDuringAPostIsSafe) {
  constexpr int kRounds = 5;
  constexpr uint64_t kRequests = 2000;
  constexpr uint64_t kBeforeTheFlush = 8;
  for (int round = 0; round < kRounds; ++round) {
    ConnectedPair pair(daemon(), {.cq_depth = 4096, .receive_queue_depth = 2048, .initiator_queue_depth = 2048});
    std::atomic<uint64_t> sends = 0;
    std::atomic<uint64_t> receives = 0;
    auto poster = std::async(std::launch::async, [&] {
      bool connected = true;
      for (uint64_t context = 1; connected && context <= kRequests; ++context) {
        const auto posted = pair.near.Post({ReceiveRequest({}, context), SendRequest({}, 0, context)});
        connected = ExpectOk(posted) && posted.response.posted() == 2;
        receives += posted.response.posted() >= 1 ? 1 : 0;
        sends += connected ? 1 : 0;
        EXPECT_TRUE(connected ||
                    ExpectRefused(posted.response.failure(), ErrorReason::QP_NOT_CONNECTED, "requests[1]"));
      }
    });
    EXPECT_TRUE(Eventually([&] { return sends >= kBeforeTheFlush; }));
    ExpectOk(Flush(pair.near));
    poster.get();
    for (uint64_t context = 1; context <= sends && !HasFailure(); ++context) {
      ExpectCompletion(pair.near.NextInitiator(), NtStatus::kCancelled, context);
    }
    for (uint64_t context = 1; context <= receives && !HasFailure(); ++context) {
      ExpectCompletion(pair.near.NextReceive(), NtStatus::kCancelled, context);
    }
    EXPECT_TRUE(pair.near.DrainInitiator().empty());
    EXPECT_TRUE(pair.near.DrainReceive().empty());
  }
}

}  // namespace
}  // namespace rnicd::test
