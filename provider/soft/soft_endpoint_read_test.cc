// Delayed reads: requests executed meanwhile, and events that end the reads.

#include "provider/soft/soft_fast_region.h"
#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {
namespace {

// Every read is a job of the worker, in the order in which they began; the test controls its duration.
class SoftEndpointReadTest : public ::testing::Test {
 protected:
  SoftEndpointReadTest() {
    Connect(near_, far_);
    far_.SetText(0, "bytes");
  }

  WorkRequest ReadBytes(uint64_t context, uint64_t sink_offset = 100) {
    return Read(context, {near_.Entry(sink_offset, 5)}, far_.region().remote_token());
  }
  WorkRequest WriteBytes(uint64_t context) {
    return Write(context, {near_.Entry(0, 5)}, far_.region().remote_token(), 1000);
  }
  bool Landed(uint64_t sink_offset = 100) const { return near_.Text(sink_offset, 5) == "bytes"; }

  SoftCard card_{{.read_delay = std::chrono::hours(1)}};
  SoftSide near_{card_};
  SoftSide far_{card_};
};

TEST_F(SoftEndpointReadTest, TheBytesLandWhenTheReadIsOver) {
  near_.Post(ReadBytes(1));
  EXPECT_FALSE(Landed());
  EXPECT_TRUE(near_.initiated().empty());
  ASSERT_TRUE(card_.worker()->RunJob());
  EXPECT_TRUE(Landed());
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, kOk}}));
}

TEST_F(SoftEndpointReadTest, TheBytesOfAHeldReadLandWhenItIsLetGo) {
  bool held = true;
  SoftCard card({.read_delay = std::chrono::hours(1), .hold_reads = [&held] { return held; }});
  SoftSide near(card);
  SoftSide far(card);
  Connect(near, far);
  near.Post(Read(1, {near.Entry(100, 5)}, far.region().remote_token()));
  ASSERT_TRUE(card.worker()->RunJob());
  EXPECT_TRUE(near.initiated().empty());
  held = false;
  ASSERT_TRUE(card.worker()->RunJob());
  EXPECT_EQ(near.initiated(), (Outcomes{{1, kReadOp, kOk}}));
}

TEST_F(SoftEndpointReadTest, WhatFollowsIsExecutedMeanwhileAndReportedAfterwards) {
  near_.SetText(0, "after");
  near_.Post(ReadBytes(1));
  near_.Post(WriteBytes(2));
  near_.Post(Silent(WriteBytes(3)));
  EXPECT_EQ(far_.Text(1000, 5), "after") << "a write does not wait for the read before it";
  EXPECT_TRUE(near_.initiated().empty()) << "but its completion does";
  card_.worker()->RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, kOk}, {2, kWritten, kOk}}));
}

TEST_F(SoftEndpointReadTest, AsManyReadsAreUnderWayAsTheCardAllows) {
  const uint32_t limit = card_.nic()->info().max_outbound_read_limit;
  for (uint64_t context = 0; context < limit + 1; ++context) {
    near_.Post(ReadBytes(context));
  }
  near_.Post(WriteBytes(100));
  EXPECT_EQ(card_.worker()->size(), limit);
  EXPECT_EQ(far_.Text(1000, 5), std::string(5, '\0')) << "requests do not overtake one that cannot begin";
  ASSERT_TRUE(card_.worker()->RunJob());
  EXPECT_EQ(card_.worker()->size(), limit) << "one has landed, one has begun";
  card_.worker()->RunAll();
  EXPECT_EQ(near_.initiated().size(), limit + 2);
}

TEST_F(SoftEndpointReadTest, ASinkThatIsInvalidatedBeforeTheBytesLandFailsTheRead) {
  const std::shared_ptr<SoftFastRegion> region = *SoftFastRegion::Create(card_.nic(), near_.domain());
  near_.Post(Silent(FastRegister(1, region, {std::span(near_.bytes()).first(kNdkPageBytes)})));
  near_.Post(Read(2, {{.address = {SoftSide::kBase + 100}, .length = 5, .token = region->local_token()}},
                  far_.region().remote_token()));
  near_.Post(Request(3, {}, InvalidateWork{.region = region, .window = nullptr}));
  EXPECT_FALSE(region->registered());
  card_.worker()->RunAll();
  EXPECT_FALSE(Landed());
  EXPECT_EQ(near_.initiated(),
            (Outcomes{{2, kReadOp, NtStatus::kAccessViolation}, {3, OperationType::kInvalidate, kCancelled}}));
}

TEST_F(SoftEndpointReadTest, ASourceThatIsDeregisteredBeforeTheBytesLandFailsTheRead) {
  const auto source = far_.Register(kAllRights);
  near_.Post(Read(1, {near_.Entry(100, 5)}, source->remote_token()));
  ASSERT_TRUE(source->Deregister().ok());
  card_.worker()->RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, NtStatus::kAccessViolation}}));
  EXPECT_EQ(far_.state(), QueuePairState::kError);
}

TEST_F(SoftEndpointReadTest, AFlushDropsTheBytesUnderWay) {
  near_.Post(ReadBytes(1));
  near_.Post(WriteBytes(2));
  near_.Flush();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, kCancelled}, {2, kWritten, kCancelled}}));
  EXPECT_EQ(card_.worker()->size(), 1u);
  card_.worker()->RunAll();
  EXPECT_FALSE(Landed());
  EXPECT_EQ(near_.initiated().size(), 2u);
}

TEST_F(SoftEndpointReadTest, DisconnectingLetsTheBytesUnderWayLandAndBeginsNothing) {
  near_.Post(ReadBytes(1));
  near_.Post(Send(2));
  near_.Post(WriteBytes(3));
  near_.endpoint().Disconnect();
  EXPECT_TRUE(Landed());
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, kOk}, {2, kSent, kCancelled}, {3, kWritten, kCancelled}}));
  card_.worker()->RunAll();
  EXPECT_EQ(near_.initiated().size(), 3u) << "its time comes too late";
}

TEST_F(SoftEndpointReadTest, AReadFromAPeerThatGoesMeanwhileIsTimedOut) {
  near_.Post(ReadBytes(1));
  near_.Post(Send(2));
  far_.endpoint().Disconnect();
  EXPECT_EQ(near_.peer_gone(), 1);
  EXPECT_EQ(near_.state(), QueuePairState::kError) << "the send behind it cannot be executed";
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, kCancelled}, {2, kSent, NtStatus::kIoTimeout}}));
}

TEST_F(SoftEndpointReadTest, AReadAloneIsTimedOutWhenItsBytesShouldLand) {
  near_.Post(ReadBytes(1));
  far_.endpoint().Disconnect();
  EXPECT_TRUE(near_.initiated().empty());
  card_.worker()->RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, NtStatus::kIoTimeout}}));
}

TEST_F(SoftEndpointReadTest, AnEndpointThatIsGoneIsNotMissedByItsReads) {
  SoftSide peer(card_);
  RecordingListener listener;
  auto gone = SoftEndpoint::Create(card_.nic(), near_.domain(), kRoomyLimits, listener);
  ASSERT_TRUE(peer.endpoint().Connect(gone->address()).ok());
  ASSERT_TRUE(gone->Connect(peer.endpoint().address()).ok());
  ASSERT_TRUE(gone->Enqueue(Read(1, {near_.Entry(100, 5)}, peer.region().remote_token())).ok());
  gone->Run();
  gone->Fail();
  gone->Shutdown();
  listener.Close();
  gone.reset();
  EXPECT_TRUE(card_.worker()->RunJob());
  EXPECT_EQ(listener.outcomes(WorkQueue::kInitiator), (Outcomes{{1, kReadOp, kCancelled}}));
}

// --- local invalidate ---

class SoftEndpointReadInvalidateTest : public ::testing::Test {
 protected:
  SoftEndpointReadInvalidateTest() { Connect(near_, far_); }

  SoftCard card_;
  SoftSide near_{card_};
  SoftSide far_{card_};
};

TEST_F(SoftEndpointReadInvalidateTest, ASinkOfHostBytesHasNothingToInvalidate) {
  std::string host = "....";
  far_.SetText(0, "read");
  near_.Post(ReadAndInvalidate(1, {{.host = std::as_writable_bytes(std::span(host)), .length = 4}},
                               far_.region().remote_token()));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, kOk}}));
  EXPECT_EQ(host, "read");
}

}  // namespace
}  // namespace rnicd::provider
