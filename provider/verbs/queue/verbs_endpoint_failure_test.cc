// How requests end after a failure here, at the peer or in the card, and which callbacks follow.

#include <thread>

#include "provider/verbs/fake/verbs_fixture_test.h"
#include "provider/verbs/queue/verbs_endpoint.h"

namespace rnicd::provider {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr NtStatus kTimeout = NtStatus::kIoTimeout;
constexpr NtStatus kViolation = NtStatus::kAccessViolation;

class VerbsEndpointFailureTest : public VerbsTest {
 protected:
  void ConnectBoth() { Connect(near_, far_); }
  static bool EndsInError(const Side& side) {
    return Eventually([&] { return side.state() == QueuePairState::kError; });
  }

  Side near_{daemon_};
  Side far_{daemon_};
};

// --- a request that fails ---

TEST_F(VerbsEndpointFailureTest, AFailureThatIsThisSidesOwnLeavesThePeerConnected) {
  ConnectBoth();
  far_.Post(Receive(10));
  near_.Post(Write(1));
  near_.Post(Write(2));
  ASSERT_TRUE(fake_.Complete(near_.number(), IBV_WC_LOC_PROT_ERR));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kViolation}, {2, kWritten, kCancelled}}));
  EXPECT_FALSE(near_.listener().completions(WorkQueue::kInitiator)[0].at_peer);
  ASSERT_TRUE(far_.listener().WaitForPeerGone());
  EXPECT_EQ(near_.peer_gone(), 0);
  EXPECT_EQ(far_.state(), QueuePairState::kReadyToSend);
  EXPECT_THAT(far_.received(), IsEmpty());
}

TEST_F(VerbsEndpointFailureTest, APeerThatDoesNotAnswerIsGone) {
  ConnectBoth();
  near_.Post(Write(1));
  ASSERT_TRUE(fake_.Complete(near_.number(), IBV_WC_RETRY_EXC_ERR));
  ASSERT_TRUE(near_.Initiated(1));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kTimeout}}));
  EXPECT_TRUE(near_.listener().WaitForPeerGone());
  EXPECT_TRUE(EndsInError(near_));
}

TEST_F(VerbsEndpointFailureTest, APostThatTheCardRefusesFailsInItsTurn) {
  ConnectBoth();
  near_.Post(Write(1));
  fake_.FailNext("PostSend", ENOMEM);
  near_.Post(Silent(Write(2)));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kCancelled}, {2, kWritten, NtStatus::kInternalError}}));
  EXPECT_EQ(near_.state(), QueuePairState::kError);
  EXPECT_TRUE(near_.Refuses(Write(3), ErrorReason::QP_NOT_CONNECTED));
}

// --- failures that the card reports by itself ---

TEST_F(VerbsEndpointFailureTest, AQueuePairThatTheCardFailedTellsThroughItsFlushedReceives) {
  ConnectBoth();
  near_.Post(Receive(10));
  near_.Post(Receive(11));
  fake_.FailQp(near_.number());
  ASSERT_TRUE(near_.Received(2));
  EXPECT_EQ(near_.received(), (Outcomes{{10, kReceived, kCancelled}, {11, kReceived, kCancelled}}));
  ASSERT_TRUE(near_.listener().WaitForPeerGone());
  EXPECT_TRUE(EndsInError(near_));
  EXPECT_TRUE(far_.listener().WaitForPeerGone());
}

TEST_F(VerbsEndpointFailureTest, AQueuePairThatTheCardFailedTellsThroughItsFlushedRequests) {
  ConnectBoth();
  near_.Post(Write(1));
  near_.Post(Write(2));
  fake_.FailQp(near_.number());
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kCancelled}, {2, kWritten, kCancelled}}));
  EXPECT_TRUE(near_.listener().WaitForPeerGone());
}

// --- a peer of the same daemon ---

TEST_F(VerbsEndpointFailureTest, WhosePeerEndsIsToldOnceAndTimedOut) {
  ConnectBoth();
  near_.Post(Write(1));
  far_.Shutdown();
  EXPECT_TRUE(near_.listener().WaitForPeerGone());
  near_.Post(Write(2));
  EXPECT_THAT(near_.posted(), SizeIs(1)) << "a peer that is gone is not asked";
  ASSERT_TRUE(fake_.Complete(near_.number()));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kWritten, kTimeout}}));
  EXPECT_TRUE(EndsInError(near_));
}

// --- flush, disconnect, shutdown ---

TEST_F(VerbsEndpointFailureTest, ShutdownTakesTheQueuePairAwayAndNothingIsReportedAfterIt) {
  ConnectBoth();
  const FakeLive before = fake_.live();
  const uint32_t number = near_.number();
  near_.Post(Receive(10));
  near_.Post(Write(1));
  near_.Shutdown();
  EXPECT_THAT(near_.initiated(), SizeIs(1));
  EXPECT_THAT(near_.received(), SizeIs(1));
  EXPECT_EQ(fake_.state(number), IBV_QPS_UNKNOWN);
  EXPECT_EQ(fake_.live().qps, before.qps - 1);
  EXPECT_EQ(fake_.live().cqs, before.cqs - 1);
  near_.Shutdown();
  near_.pair().Flush();
  near_.pair().Kick();
  Settle();
}

TEST_F(VerbsEndpointFailureTest, ARunningListenerIsWaitedForByShutdown) {
  ConnectBoth();
  std::atomic<bool> inside = false;
  std::atomic<bool> may_leave = false;
  near_.listener().on_completion = [&](const Completion&) {
    inside = true;
    EXPECT_TRUE(Eventually([&] { return may_leave.load(); }));
  };
  near_.Post(Write(1));
  ASSERT_TRUE(fake_.Complete(near_.number()));
  ASSERT_TRUE(Eventually([&] { return inside.load(); }));
  std::atomic<bool> done = false;
  std::thread shutdown([&] {
    near_.Shutdown();
    done = true;
  });
  EXPECT_TRUE(Eventually([&] { return near_.state() == QueuePairState::kError; }));
  EXPECT_FALSE(done);
  may_leave = true;
  shutdown.join();
  EXPECT_THAT(near_.initiated(), SizeIs(1));
}

// A card whose timeout after a failure is one tick, unless it has flushed everything.
class VerbsGiveUpTest : public VerbsTest {
 protected:
  VerbsGiveUpTest() : VerbsTest(Impatient()) {}
  static VerbsOptions Impatient() {
    VerbsOptions options = QuietOptions();
    options.card_timeout = std::chrono::milliseconds(0);
    return options;
  }
};

// The card accepts the transition to ERR and completes nothing.
TEST_F(VerbsGiveUpTest, ACardThatDoesNotFlushIsGivenUp) {
  Side side(daemon_);
  ASSERT_TRUE(side.pair().Connect(FormatQpAddress(Foreigner())).ok());
  side.Post(Receive(10));
  side.Post(Write(1));
  side.Post(Write(2));
  fake_.FailNext("ModifyQp", EINVAL, UINT64_MAX);
  side.Shutdown();
  EXPECT_EQ(side.initiated(), (Outcomes{{1, kWritten, kCancelled}, {2, kWritten, kCancelled}}));
  EXPECT_EQ(side.received(), (Outcomes{{10, kReceived, kCancelled}}));
  EXPECT_EQ(fake_.state(side.number()), IBV_QPS_UNKNOWN);
  fake_.FailNext("ModifyQp", 0, 0);
}

// --- dead peers ---

class VerbsProbeTest : public VerbsTest {
 protected:
  VerbsProbeTest() : VerbsTest(ProbingOptions()) {}

  // Returns after every queue pair was checked a few more times.
  bool AwaitLooks() {
    const uint64_t looks = fake_.calls("QueryQpState");
    return Eventually([&] { return fake_.calls("QueryQpState") >= looks + 6; });
  }
  bool AwaitProbe() {
    return Eventually([&] { return side_.posted().size() == 1; });
  }

  Side side_{daemon_};
};

TEST_F(VerbsProbeTest, APeerOfWhichNothingWasSeenIsNotProbed) {
  ASSERT_TRUE(side_.pair().Connect(FormatQpAddress(Foreigner())).ok());
  ASSERT_TRUE(AwaitLooks());
  EXPECT_THAT(side_.posted(), IsEmpty()) << "it may not have connected yet";
}

TEST_F(VerbsProbeTest, AnIdlePeerIsProbedWithAWriteOfNothingOneAtATime) {
  ASSERT_TRUE(side_.pair().Connect(FormatQpAddress(Foreigner())).ok());
  side_.Post(Receive(10));
  ASSERT_TRUE(fake_.Receive(side_.number(), 0));
  ASSERT_TRUE(AwaitProbe());
  const PostedSend probe = side_.posted()[0];
  EXPECT_EQ(probe.opcode, IBV_WR_RDMA_WRITE);
  EXPECT_THAT(probe.entries, IsEmpty());
  EXPECT_NE(probe.send_flags & IBV_SEND_SIGNALED, 0u);
  ASSERT_TRUE(AwaitLooks());
  EXPECT_THAT(side_.posted(), SizeIs(1));
  ASSERT_TRUE(fake_.Complete(side_.number()));
  ASSERT_TRUE(AwaitProbe());
  EXPECT_THAT(side_.initiated(), IsEmpty()) << "no probe is reported";
  EXPECT_EQ(side_.state(), QueuePairState::kReadyToSend);
}

TEST_F(VerbsProbeTest, ABusyConnectionIsNotProbed) {
  ASSERT_TRUE(side_.pair().Connect(FormatQpAddress(Foreigner())).ok());
  side_.Post(Write(1));
  ASSERT_TRUE(fake_.Complete(side_.number()));
  side_.Post(Write(2));
  ASSERT_TRUE(AwaitLooks());
  std::vector<uint64_t> ids;
  for (const PostedSend& send : side_.posted()) {
    ids.push_back(send.wr_id);
  }
  EXPECT_THAT(ids, ::testing::Contains(2u));
  EXPECT_LE(ids.size(), 2u) << "at most a probe from between the two";
}

TEST_F(VerbsProbeTest, AQueueIsAsDeepAsEverWhileAProbeIsUnderWay) {
  Side small(daemon_, {.initiator_depth = 2});
  ASSERT_TRUE(small.ConnectTo(small).ok());
  ASSERT_TRUE(Eventually([&] { return small.posted().size() == 1; }));
  small.Post(Write(1));
  small.Post(Write(2));
  EXPECT_TRUE(small.Refuses(Write(3), ErrorReason::QUEUE_FULL));
  EXPECT_THAT(small.posted(), SizeIs(3));
  EXPECT_EQ(small.state(), QueuePairState::kReadyToSend);
}

TEST_F(VerbsProbeTest, AProbeThatIsNotAnsweredSaysThatThePeerIsGone) {
  Side other(daemon_);
  Connect(side_, other);
  ASSERT_TRUE(AwaitProbe());
  ASSERT_TRUE(fake_.Complete(side_.number(), IBV_WC_RETRY_EXC_ERR));
  ASSERT_TRUE(side_.listener().WaitForPeerGone());
  EXPECT_TRUE(Eventually([&] { return side_.state() == QueuePairState::kError; }));
  EXPECT_THAT(side_.initiated(), IsEmpty());
  ASSERT_TRUE(AwaitLooks());
}

TEST_F(VerbsProbeTest, TheFirstRequestBehindAProbeThatIsNotAnsweredTimesOutAsTheProbeDid) {
  Side other(daemon_);
  Connect(side_, other);
  ASSERT_TRUE(AwaitProbe());
  side_.Post(Write(1));
  side_.Post(Write(2));
  ASSERT_TRUE(fake_.Complete(side_.number(), IBV_WC_RETRY_EXC_ERR));
  ASSERT_TRUE(side_.Initiated(2));
  EXPECT_EQ(side_.initiated(), (Outcomes{{1, kWritten, kTimeout}, {2, kWritten, kCancelled}}))
      << "as if there had been no probe";
}

TEST_F(VerbsProbeTest, APeerOfThisDaemonIsProbedWhenItHasConnected) {
  Side other(daemon_);
  ASSERT_TRUE(side_.ConnectTo(other).ok());
  ASSERT_TRUE(AwaitLooks());
  EXPECT_THAT(side_.posted(), IsEmpty());
  ASSERT_TRUE(other.ConnectTo(side_).ok());
  EXPECT_TRUE(AwaitProbe());
}

TEST_F(VerbsProbeTest, AQueuePairThatTheCardFailedSilentlyIsNoticed) {
  Side other(daemon_);
  Connect(side_, other);
  fake_.FailQp(side_.number());
  ASSERT_TRUE(side_.listener().WaitForPeerGone());
  EXPECT_TRUE(Eventually([&] { return side_.state() == QueuePairState::kError; }));
  EXPECT_TRUE(other.listener().WaitForPeerGone());
}

TEST_F(VerbsProbeTest, AShutdownDuringAProbeWaitsForIt) {
  ASSERT_TRUE(side_.ConnectTo(side_).ok());
  ASSERT_TRUE(AwaitProbe());
  side_.Shutdown();
  EXPECT_EQ(fake_.live().qps, 0u);
  EXPECT_EQ(side_.peer_gone(), 0);
}

}  // namespace
}  // namespace rnicd::provider
