// Group H of the edge cases, last part: how a connection ends, and in which order its bytes arrive.
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/peer_access.h"
#include "tests/conformance/queue_steps.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

// The next event must report that the peer of this queue pair has disconnected.
void ExpectDisconnected(EventReader& events, uint64_t qp_id, uint64_t qp_context = QueueOptions().qp_context) {
  const std::optional<v1::WatchEventsResponse> event = events.Next();
  ASSERT_TRUE(event.has_value()) << "no word of the disconnect";
  ASSERT_TRUE(event->has_qp_disconnected()) << event->ShortDebugString();
  EXPECT_EQ(event->qp_disconnected().qp_id(), qp_id);
  EXPECT_EQ(event->qp_disconnected().qp_context(), qp_context);
}

// Row 128. NDK: a flush completes every pending request of both queues with STATUS_CANCELLED. SILENT_SUCCESS hides
// only success. Here a send waits for a receive that never comes, and all others wait behind it.
TEST_P(NdkConformance, Case128_FlushCancelsEverythingSilentRequestsToo) {
  ConnectedPair pair(daemon());
  RegisteredMemory near(pair.near_session, kPage, kMrLocalWrite);
  RegisteredMemory far(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
  TestMemory pages(pair.near_session, kPage);
  const uint64_t mr = FastRegion(pair.near_session, 1);
  far.memory.SetText(0, "before");
  pair.near.MustPost({ReceiveRequest({}, 11), ReceiveRequest({near.Piece(0, 64)}, 12)});
  pair.near.MustPost({
      SendRequest({}, 0, 1),
      WriteRequest({InlineSge("behind")}, kBase, far.remote_token(), kInline | kSilent, 2),
      SendRequest({near.Piece(0, 8)}, kSilent, 3),
      FastRegisterRequest(mr, pages.Pages(0, 1), kPage, kBase, v1::OP_FLAG_ALLOW_REMOTE_READ | kSilent, 0, 4),
      InvalidateMrRequest(mr, kSilent, 5),
      ReadRequest({near.Piece(0, 8)}, kBase, far.remote_token(), kSilent, 6),
  });
  EXPECT_TRUE(pair.near.DrainInitiator().empty());
  ExpectOk(Flush(pair.near));
  for (uint64_t context = 1; context <= 6; ++context) {
    ExpectCompletion(pair.near.NextInitiator(), NtStatus::kCancelled, context);
  }
  ExpectCompletion(pair.near.NextReceive(), NtStatus::kCancelled, 11);
  ExpectCompletion(pair.near.NextReceive(), NtStatus::kCancelled, 12);
  EXPECT_TRUE(pair.near.DrainInitiator().empty());
  EXPECT_TRUE(pair.near.DrainReceive().empty());
  EXPECT_EQ(far.memory.Text(0, 6), "before");
  ExpectInError(pair.near);
}

// Row 128, for requests that wait because the peer has not called ConnectQp yet, all of them silent.
TEST_P(NdkConformance, Case128_RequestsThatWaitForThePeerAreFlushed) {
  TestSession session(daemon());
  TestQueue near(session);
  TestQueue far(session);
  ExpectOk(Connect(near, far.Query().address()));
  near.MustPost({Tick(1, kSilent), SendRequest({}, kSilent, 2), Tick(3, kSilent)});
  EXPECT_TRUE(near.DrainInitiator().empty());
  ExpectOk(Flush(near));
  for (uint64_t context = 1; context <= 3; ++context) {
    ExpectCompletion(near.NextInitiator(), NtStatus::kCancelled, context);
  }
}

// Row 128: receives that were posted before any connection are flushed likewise.
TEST_P(NdkConformance, Case128_ReceivesOfAnUnconnectedQueuePairAreFlushed) {
  TestSession session(daemon());
  TestQueue queue(session);
  queue.MustPost({ReceiveRequest({}, 1), ReceiveRequest({}, 2)});
  ExpectOk(Flush(queue));
  ExpectCompletion(queue.NextReceive(), NtStatus::kCancelled, 1);
  ExpectCompletion(queue.NextReceive(), NtStatus::kCancelled, 2);
  ExpectInError(queue);
}

// Row 129. NDK: close starts the flush itself. Whether the completions can still be polled is not said; here they can.
TEST_P(NdkConformance, Case129_CloseFlushesAndTheCompletionsStay) {
  ConnectedPair pair(daemon());
  pair.near.MustPost({ReceiveRequest({}, 11), SendRequest({}, 0, 1), Tick(2, kSilent), ReceiveRequest({}, 12)});
  const auto closed = CloseQp(pair.near_session, pair.near.qp_id());
  ExpectOk(closed);
  EXPECT_EQ(closed.response.ntstatus(), kStatusSuccess);
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kCancelled, 1);
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kCancelled, 2);
  ExpectCompletion(pair.near.NextReceive(), NtStatus::kCancelled, 11);
  ExpectCompletion(pair.near.NextReceive(), NtStatus::kCancelled, 12);
  ExpectRefused(pair.near.Post({Tick()}), ErrorReason::OBJECT_NOT_FOUND, "qp_id");
}

// Row 129, with a transfer under way: it is over when the close is. NDK lets it end either way, but the sink of a read
// that was cancelled must not change any more.
TEST_P(NdkConformance, Case129_CloseWaitsForATransferUnderWay) {
  ConnectedPair pair(daemon_with(HoldableReadsFlags()));
  RegisteredMemory sink(pair.near_session, kPage, kMrSink);
  RegisteredMemory source(pair.far_session, kPage, kMrRemoteRead);
  sink.memory.SetText(0, "stale");
  source.memory.SetText(0, "fresh");
  HeldReads held;
  pair.near.MustPost({ReadRequest({sink.Piece(0, 5)}, kBase, source.remote_token(), 0, 129)});
  ExpectOk(CloseQp(pair.near_session, pair.near.qp_id()));
  const v1::CqResultEx ended = pair.near.NextInitiator();
  if (ended.result().ntstatus() == kStatusSuccess) {
    EXPECT_EQ(sink.memory.Text(0, 5), "fresh");
  } else {
    ExpectCompletion(ended, NtStatus::kCancelled, 129);
    const std::string left = sink.memory.Text(0, 5);
    held.LetGo();
    MustReadLater(pair.near_session, pair.far_session);
    EXPECT_EQ(sink.memory.Text(0, 5), left);
  }
}

// Row 130. NDK: the indication that the peer disconnected must not flush what is outstanding.
TEST_P(NdkConformance, Case130_DisconnectIndicationFlushesNothing) {
  ConnectedPair pair(daemon());
  EventReader events(pair.near_session);
  pair.near.MustPost({ReceiveRequest({}, 1), ReceiveRequest({}, 2)});
  pair.far.MustPost({ReceiveRequest({}, 3)});
  ExpectOk(Disconnect(pair.far));
  ExpectDisconnected(events, pair.near.qp_id());
  EXPECT_TRUE(pair.near.DrainReceive().empty());
  // The disconnecting side flushes its requests.
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kCancelled, 3);
  ExpectOk(Flush(pair.near));
  ExpectCompletion(pair.near.NextReceive(), NtStatus::kCancelled, 1);
  ExpectCompletion(pair.near.NextReceive(), NtStatus::kCancelled, 2);
}

// Row 130. NDK promises nothing about requests that need the peer. Here they fail as a card's do when nobody answers:
// the one that waits for a receive, and behind it the others are flushed.
TEST_P(NdkConformance, Case130_RequestThatNeedsTheLostPeerFails) {
  ConnectedPair pair(daemon());
  EventReader events(pair.near_session);
  pair.near.MustPost({SendRequest({}, kSilent, 1), Tick(2, kSilent)});
  ExpectOk(Disconnect(pair.far));
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kIoTimeout, 1);
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kCancelled, 2);
  ExpectDisconnected(events, pair.near.qp_id());
  ExpectInError(pair.near);
}

// Row 130: likewise for a request that is posted after the indication.
TEST_P(NdkConformance, Case130_RequestAfterTheIndicationFails) {
  ConnectedPair pair(daemon());
  EventReader events(pair.near_session);
  ExpectOk(Disconnect(pair.far));
  ExpectDisconnected(events, pair.near.qp_id());
  ExpectCompletion(pair.near.Run(SendRequest({})), NtStatus::kIoTimeout);
  ExpectInError(pair.near);
}

// Row 130. NDK: a disconnect completes when all transfers are over, those of silent requests included; then comes the
// flush. A disconnected queue pair cannot be used again.
TEST_P(NdkConformance, Case130_DisconnectWaitsForSilentTransfersAndThenFlushes) {
  ConnectedPair pair(daemon_with(HoldableReadsFlags()));
  RegisteredMemory sink(pair.near_session, kPage, kMrSink);
  RegisteredMemory source(pair.far_session, kPage, kMrRemoteRead);
  sink.memory.SetText(0, "stale");
  source.memory.SetText(0, "fresh");
  HeldReads held;
  pair.near.MustPost({ReceiveRequest({}, 11), ReadRequest({sink.Piece(0, 5)}, kBase, source.remote_token(), kSilent, 1),
                      SendRequest({}, kSilent, 2)});
  auto disconnected = std::async(std::launch::async, [&] { return Disconnect(pair.near); });
  held.LetGo();
  ExpectOk(disconnected.get());
  EXPECT_EQ(sink.memory.Text(0, 5), "fresh");
  // The silent read succeeded, so it has no completion.
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kCancelled, 2);
  EXPECT_TRUE(pair.near.DrainInitiator().empty());
  ExpectCompletion(pair.near.NextReceive(), NtStatus::kCancelled, 11);
  ExpectRefused(Disconnect(pair.near), ErrorReason::QP_NOT_CONNECTED, "qp_id");
  TestQueue other(pair.far_session);
  ExpectRefused(Connect(pair.near, other.Query().address()), ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
}

// Row 131. NDK names no code for a receive that is shorter than the send; user mode's documents and tests disagree.
// Here the receive has STATUS_BUFFER_OVERFLOW, the send learns that the peer had no room, and the connection is over.
TEST_P(NdkConformance, Case131_ReceiveShorterThanTheSendEndsTheConnection) {
  ConnectedPair pair(daemon());
  RegisteredMemory far(pair.far_session, kPage, kMrLocalWrite);
  far.memory.SetText(0, "........");
  pair.far.MustPost({ReceiveRequest({far.Piece(0, 2), far.Piece(2, 2)}, 1), ReceiveRequest({far.Piece(0, 64)}, 2)});
  pair.near.MustPost({SendRequest({InlineSge("fiver")}, kInline, 1), Tick(2)});
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kRemoteResources, 1);
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kCancelled, 2);
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kBufferOverflow, 1);
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kCancelled, 2);
  EXPECT_EQ(far.memory.Text(4, 4), "....");
  ExpectInError(pair.near);
  ExpectInError(pair.far);
}

// Row 131: a receive of just that size is enough.
TEST_P(NdkConformance, Case131_ReceiveOfTheSameSizeTakesTheSend) {
  ConnectedPair pair(daemon());
  RegisteredMemory far(pair.far_session, kPage, kMrLocalWrite);
  pair.far.MustPost({ReceiveRequest({far.Piece(0, 2), far.Piece(2, 3)}, 131)});
  pair.near.MustRun(SendRequest({InlineSge("fiver")}, kInline));
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kSuccess, 131);
  EXPECT_EQ(far.memory.Text(0, 5), "fiver");
}

// True if each byte of the target is at least as new as the last one, which is read first. Values only grow.
bool LastByteIsTheOldest(std::span<std::byte> target) {
  const auto value_at = [&](size_t index) {
    return std::atomic_ref<std::byte>(target[index]).load(std::memory_order_acquire);
  };
  const std::byte last = value_at(target.size() - 1);
  for (size_t index = 0; index < target.size(); ++index) {
    if (value_at(index) < last) {
      return false;
    }
  }
  return true;
}

// Row 132. NDK: with the adapter flag IN_ORDER_DMA the last byte never changes before an earlier one. Value after value
// is written over the same target while another thread watches it.
TEST_P(NdkConformance, Case132_LastByteOfAWriteChangesLast) {
  constexpr int kRounds = 20;
  constexpr uint32_t kValues = 255;
  constexpr uint32_t kPieces = 8;
  ConnectedPair pair(daemon(), {.initiator_queue_depth = kValues, .max_initiator_request_sge = kPieces});
  ASSERT_NE(AdapterInfo(pair.near_session).adapter_flags() & kAdapterInOrderDma, 0u);
  RegisteredMemory source(pair.near_session, kValues * kPage, 0);
  RegisteredMemory target(pair.far_session, kPieces * kPage, kMrRemoteWrite);
  std::vector<v1::WorkRequest> chain;
  for (uint32_t value = 1; value <= kValues; ++value) {
    // Several copies of this value's page, so that a write takes long enough to be observed.
    source.memory.SetText((value - 1) * kPage, std::string(kPage, static_cast<char>(value)));
    const std::vector<v1::Sge> sges(kPieces, source.Piece((value - 1) * kPage, kPage));
    chain.push_back(WriteRequest(sges, kBase, target.remote_token(), value < kValues ? kSilent : 0, value));
  }
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    target.memory.Fill(std::byte{0});
    std::atomic<bool> written = false;
    auto watcher = std::async(std::launch::async, [&] {
      int violations = 0;
      do {
        violations += LastByteIsTheOldest(target.memory.bytes()) ? 0 : 1;
      } while (!written);
      return violations;
    });
    pair.near.MustPost(chain);
    ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, kValues);
    written = true;
    EXPECT_EQ(watcher.get(), 0) << "the last byte was newer than an earlier one";
    EXPECT_EQ(target.memory.bytes().back(), static_cast<std::byte>(kValues));
  }
}

}  // namespace
}  // namespace rnicd::test
