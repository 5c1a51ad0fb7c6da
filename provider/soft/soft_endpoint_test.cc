// Connecting, execution in order, waiting and flushing of an endpoint.

#include "provider/soft/soft_endpoint.h"

#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {
namespace {

constexpr NtStatus kTimeout = NtStatus::kIoTimeout;

class SoftEndpointTest : public ::testing::Test {
 protected:
  SoftCard card_;
  SoftSide near_{card_};
  SoftSide far_{card_};
};

// --- transfers ---

TEST_F(SoftEndpointTest, ASendArrivesInTheOldestReceive) {
  Connect(near_, far_);
  far_.Post(Receive(10, {far_.Entry(0, 8)}));
  far_.Post(Receive(11, {far_.Entry(8, 8)}));
  near_.SetText(100, "hello");
  near_.Post(Send(1, {near_.Entry(100, 5)}, {.solicit = true}));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}}));
  const std::vector<Completion> received = far_.listener().completions(WorkQueue::kReceive);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].request_context, 10u);
  EXPECT_EQ(received[0].type, kReceived);
  EXPECT_EQ(received[0].bytes, 5u);
  EXPECT_TRUE(received[0].solicited);
  EXPECT_EQ(far_.Text(0, 5), "hello");
}

TEST_F(SoftEndpointTest, EveryKindOfPayloadArrives) {
  Connect(near_, far_);
  std::string host = "host";
  far_.Post(Receive(10, {far_.Entry(0, 2), far_.Entry(20, 0), far_.Entry(10, 6)}));
  near_.SetText(0, "ab");
  near_.Post(Send(1, {{.host = std::as_writable_bytes(std::span(host)), .length = 4}, near_.Entry(0, 2)}));
  EXPECT_EQ(far_.Text(0, 2), "ho");
  EXPECT_EQ(far_.Text(10, 4), "stab");

  far_.Post(Receive(11, {far_.Entry(0, 2)}));
  WorkRequest inlined = Send(2, {near_.Entry(1 << 20, 7)});
  inlined.payload = InlineData{std::byte{'x'}, std::byte{'y'}};
  near_.Post(std::move(inlined));
  EXPECT_EQ(far_.Text(0, 2), "xy") << "with inline data the entries say nothing";
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}, {2, kSent, kOk}}));
}

TEST_F(SoftEndpointTest, WritesAndReadsReachThePeersMemory) {
  Connect(near_, far_);
  near_.SetText(0, "write");
  far_.SetText(200, "read");
  near_.Post(Write(1, {near_.Entry(0, 5)}, far_.region().remote_token(), 100));
  near_.Post(Read(2, {near_.Entry(50, 4)}, far_.region().remote_token(), 200));
  EXPECT_EQ(far_.Text(100, 5), "write");
  EXPECT_EQ(near_.Text(50, 4), "read");
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kReadOp, kOk}}));
  EXPECT_TRUE(far_.received().empty()) << "the peer is not told of either";
}

TEST_F(SoftEndpointTest, ATransferOfNoBytesLooksAtNoRemoteToken) {
  Connect(near_, far_);
  near_.Post(Write(1, {}, RemoteToken{0xdead}));
  near_.Post(Read(2, {near_.Entry(0, 0)}, RemoteToken{0}));
  far_.Post(Receive(10));
  near_.Post(Send(3));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kReadOp, kOk}, {3, kSent, kOk}}));
  EXPECT_EQ(far_.received(), (Outcomes{{10, kReceived, kOk}}));
}

TEST_F(SoftEndpointTest, ASilentSuccessIsNotReported) {
  Connect(near_, far_);
  near_.Post(Silent(Write(1, {near_.Entry(0, 1)}, far_.region().remote_token())));
  near_.Post(Write(2, {near_.Entry(0, 1)}, far_.region().remote_token()));
  EXPECT_EQ(near_.initiated(), (Outcomes{{2, kWritten, kOk}}));
}

TEST_F(SoftEndpointTest, AcceptedRequestsBeginWithTheNextRing) {
  Connect(near_, far_);
  ASSERT_TRUE(near_.endpoint().Enqueue(Write(1, {}, {})).ok());
  ASSERT_TRUE(near_.endpoint().Enqueue(Write(2, {}, {})).ok());
  near_.endpoint().Run();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kWritten, kOk}}));
}

// --- waiting ---

TEST_F(SoftEndpointTest, ASendWaitsForAReceiveAndWhatIsBehindItWaitsToo) {
  Connect(near_, far_);
  near_.Post(Send(1));
  near_.Post(Write(2, {}, {}));
  near_.Post(Send(3));
  EXPECT_TRUE(near_.initiated().empty());
  far_.Post(Receive(10));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}, {2, kWritten, kOk}}));
  far_.Post(Receive(11));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}, {2, kWritten, kOk}, {3, kSent, kOk}}));
  EXPECT_EQ(far_.received(), (Outcomes{{10, kReceived, kOk}, {11, kReceived, kOk}}));
}

TEST_F(SoftEndpointTest, ReceivesThatAreMissingAtBothEndsHoldUpBoth) {
  Connect(near_, far_);
  near_.Post(Send(1));
  far_.Post(Send(2));
  near_.Post(Receive(10));
  EXPECT_EQ(far_.initiated(), (Outcomes{{2, kSent, kOk}}));
  EXPECT_TRUE(near_.initiated().empty());
  far_.Post(Receive(20));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}}));
}

// --- connecting ---

TEST_F(SoftEndpointTest, WhoWaitsForAPeerThatConnectsElsewhereIsTimedOut) {
  SoftSide also(card_);
  SoftSide elsewhere(card_);
  ASSERT_TRUE(near_.ConnectTo(far_).ok());
  ASSERT_TRUE(also.ConnectTo(far_).ok());
  near_.Post(Send(1));
  also.Post(Silent(Send(2)));
  ASSERT_TRUE(far_.ConnectTo(elsewhere).ok());
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kTimeout}}));
  EXPECT_EQ(also.initiated(), (Outcomes{{2, kSent, kTimeout}})) << "every one who waits, not only the last";
  EXPECT_EQ(near_.state(), QueuePairState::kError);
  EXPECT_EQ(far_.state(), QueuePairState::kReadyToSend);
}

TEST_F(SoftEndpointTest, WhoConnectsToAPeerThatIsConnectedElsewhereIsTimedOut) {
  SoftSide third(card_);
  Connect(near_, far_);
  ASSERT_TRUE(third.ConnectTo(far_).ok());
  EXPECT_EQ(third.state(), QueuePairState::kReadyToSend);
  third.Post(Write(1, {third.Entry(0, 1)}, far_.region().remote_token()));
  EXPECT_EQ(third.initiated(), (Outcomes{{1, kWritten, kTimeout}}));
}

TEST_F(SoftEndpointTest, AnEndpointMayConnectToItself) {
  ASSERT_TRUE(near_.ConnectTo(near_).ok());
  near_.SetText(0, "echo");
  near_.Post(Send(1, {near_.Entry(0, 4)}));
  EXPECT_TRUE(near_.initiated().empty());
  near_.Post(Receive(10, {near_.Entry(100, 4)}));
  near_.Post(Write(2, {near_.Entry(0, 4)}, near_.region().remote_token(), 200));
  near_.Post(Read(3, {near_.Entry(300, 4)}, near_.region().remote_token(), 0));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}, {2, kWritten, kOk}, {3, kReadOp, kOk}}));
  EXPECT_EQ(near_.received(), (Outcomes{{10, kReceived, kOk}}));
  for (const uint64_t offset : {100, 200, 300}) {
    EXPECT_EQ(near_.Text(offset, 4), "echo");
  }
}

TEST_F(SoftEndpointTest, AnEndpointConnectedToItselfFailsAsOne) {
  ASSERT_TRUE(near_.ConnectTo(near_).ok());
  near_.Post(Receive(10));
  near_.Post(Write(1, {near_.Entry(0, 1)}, RemoteToken{0xdead}));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, NtStatus::kAccessViolation}}));
  EXPECT_EQ(near_.received(), (Outcomes{{10, kReceived, kCancelled}}));
  EXPECT_EQ(near_.peer_gone(), 0) << "it knows already";
}

TEST_F(SoftEndpointTest, AnEndpointConnectedToItselfCanBeDisconnected) {
  ASSERT_TRUE(near_.ConnectTo(near_).ok());
  near_.Post(Send(1));
  near_.Post(Silent(Send(2)));
  near_.endpoint().Disconnect();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kCancelled}, {2, kSent, kCancelled}}));
  EXPECT_EQ(near_.peer_gone(), 0);
}

// --- the end ---

TEST_F(SoftEndpointTest, FlushingBeforeConnectingIsTheEndToo) {
  near_.Post(Receive(10));
  near_.Flush();
  EXPECT_EQ(near_.received(), (Outcomes{{10, kReceived, kCancelled}}));
  EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::QP_NOT_CONNECTABLE));
}

TEST_F(SoftEndpointTest, ThePeerIsToldOnceAndItsReceivesStay) {
  Connect(near_, far_);
  far_.Post(Receive(10));
  near_.Flush();
  near_.endpoint().Disconnect();
  near_.Shutdown();
  EXPECT_EQ(far_.peer_gone(), 1);
  EXPECT_EQ(near_.peer_gone(), 0);
  EXPECT_TRUE(far_.received().empty()) << "they are their owner's to flush";
  EXPECT_EQ(far_.state(), QueuePairState::kReadyToSend);
}

TEST_F(SoftEndpointTest, WhatNeedsAPeerThatIsGoneIsTimedOutAndTheRestIsFlushed) {
  Connect(near_, far_);
  near_.Post(Send(1));
  near_.Post(Send(2));
  near_.Post(Receive(10));
  far_.Shutdown();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kTimeout}, {2, kSent, kCancelled}}));
  EXPECT_EQ(near_.received(), (Outcomes{{10, kReceived, kCancelled}}));
  EXPECT_EQ(near_.peer_gone(), 1);
}

TEST_F(SoftEndpointTest, APostAfterThePeerHasGoneIsTimedOut) {
  Connect(near_, far_);
  far_.endpoint().Disconnect();
  EXPECT_EQ(near_.peer_gone(), 1);
  near_.Post(Write(1, {near_.Entry(0, 1)}, far_.region().remote_token()));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kTimeout}}));
}

// A connected endpoint is notified when its peer ends, even if the peer never connected.
TEST_F(SoftEndpointTest, EveryoneWhoWaitsForAPeerIsToldThatItHasGone) {
  SoftSide also(card_);
  ASSERT_TRUE(near_.ConnectTo(far_).ok());
  ASSERT_TRUE(also.ConnectTo(far_).ok());
  also.Post(Send(1));
  far_.Shutdown();
  EXPECT_EQ(near_.peer_gone(), 1);
  EXPECT_EQ(also.peer_gone(), 1);
  EXPECT_EQ(also.initiated(), (Outcomes{{1, kSent, kTimeout}}));
}

TEST_F(SoftEndpointTest, NothingIsAcceptedOrReportedAfterShutdown) {
  Connect(near_, far_);
  near_.Post(Receive(10));
  near_.Shutdown();
  EXPECT_EQ(near_.received(), (Outcomes{{10, kReceived, kCancelled}}));
  EXPECT_TRUE(near_.Refuses(Receive(11), ErrorReason::QP_NOT_CONNECTED)) << "its completion could not be reported";
  EXPECT_TRUE(near_.Refuses(Send(1), ErrorReason::QP_NOT_CONNECTED));
  near_.endpoint().Run();
  near_.Flush();
  near_.Shutdown();
  far_.Shutdown();
  EXPECT_EQ(near_.received().size(), 1u);
}

// --- room ---

TEST_F(SoftEndpointTest, AFullQueueCountsWhatIsNotComplete) {
  SoftSide small(card_, {.receive_depth = 1, .initiator_depth = 2});
  Connect(small, far_);
  small.Post(Send(1));
  small.Post(Silent(Send(2)));
  EXPECT_TRUE(small.Refuses(Send(3), ErrorReason::QUEUE_FULL)) << "silent ones take room too";
  small.Post(Receive(10));
  EXPECT_TRUE(small.Refuses(Receive(11), ErrorReason::QUEUE_FULL));
  far_.Post(Receive(20));
  EXPECT_EQ(small.initiated(), (Outcomes{{1, kSent, kOk}}));
  small.Post(Send(4));
  EXPECT_TRUE(small.Refuses(Send(5), ErrorReason::QUEUE_FULL));
  far_.Post(Receive(21));
  small.Post(Send(6));
  far_.Post(Send(7));
  small.Post(Receive(12));
  EXPECT_EQ(small.received(), (Outcomes{{10, kReceived, kOk}}));
}

// --- the engine ---

TEST_F(SoftEndpointTest, MoreThanOneMebibyteGoesOnInTheEngine) {
  constexpr uint32_t kBytes = 3 << 19;  // 1.5 MiB each.
  SoftSide sender(card_, kRoomyLimits, kBytes);
  SoftSide receiver(card_, kRoomyLimits, kBytes);
  Connect(sender, receiver);
  for (uint64_t context = 1; context <= 3; ++context) {
    ASSERT_TRUE(
        sender.endpoint().Enqueue(Write(context, {sender.Entry(0, kBytes)}, receiver.region().remote_token())).ok());
  }
  sender.endpoint().Run();
  EXPECT_EQ(sender.initiated(), (Outcomes{{1, kWritten, kOk}})) << "the caller is let go after the first";
  sender.Post(Write(4, {}, {}));
  EXPECT_EQ(sender.initiated().size(), 1u) << "the engine is the runner now";
  EXPECT_EQ(card_.engine()->size(), 1u);
  EXPECT_TRUE(card_.engine()->RunJob());
  EXPECT_EQ(sender.initiated().size(), 2u);
  card_.engine()->RunAll();
  EXPECT_EQ(sender.initiated(),
            (Outcomes{{1, kWritten, kOk}, {2, kWritten, kOk}, {3, kWritten, kOk}, {4, kWritten, kOk}}));
}

TEST_F(SoftEndpointTest, ManyRequestsOfNoBytesGoOnInTheEngineToo) {
  constexpr uint64_t kRequests = 10000;
  SoftSide busy(card_, {.initiator_depth = kRequests});
  Connect(busy, far_);
  for (uint64_t context = 0; context < kRequests; ++context) {
    ASSERT_TRUE(busy.endpoint().Enqueue(Write(context, {}, {})).ok());
  }
  busy.endpoint().Run();
  EXPECT_LT(busy.initiated().size(), kRequests);
  EXPECT_EQ(card_.engine()->size(), 1u);
  card_.engine()->RunAll();
  EXPECT_EQ(busy.initiated().size(), kRequests);
}

TEST_F(SoftEndpointTest, WhatTheEngineWasToGoOnWithIsFlushedToo) {
  constexpr uint32_t kBytes = 1 << 20;
  SoftSide sender(card_, kRoomyLimits, kBytes);
  SoftSide receiver(card_, kRoomyLimits, kBytes);
  Connect(sender, receiver);
  for (uint64_t context = 1; context <= 3; ++context) {
    ASSERT_TRUE(
        sender.endpoint().Enqueue(Write(context, {sender.Entry(0, kBytes)}, receiver.region().remote_token())).ok());
  }
  sender.endpoint().Run();
  sender.Flush();
  card_.engine()->RunAll();
  EXPECT_EQ(sender.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kWritten, kCancelled}, {3, kWritten, kCancelled}}));
  EXPECT_EQ(receiver.peer_gone(), 1);
}

}  // namespace
}  // namespace rnicd::provider
