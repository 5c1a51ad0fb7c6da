// How requests of the soft card access memory, whose memory they reach, and for how long they block their caller.
// Order, waiting and failure are tested in provider/engine, and what all cards do in tests/provider_contract.

#include "provider/soft/soft_endpoint.h"

#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {
namespace {

constexpr NtStatus kRefused = NtStatus::kAccessViolation;

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

// --- whose memory ---

TEST_F(SoftEndpointTest, NoLocalOrPrivilegedTokenWorksForAPeer) {
  for (const uint32_t token :
       {far_.region().local_token().value, SoftKeyTable::PrivilegedTokenOf(far_.domain()).value, 0u, UINT32_MAX}) {
    SoftSide requester(card_);
    SoftSide target(far_, kNdkPageBytes);
    Connect(requester, target);
    requester.Post(Write(1, {requester.Entry(0, 1)}, RemoteToken{token}));
    EXPECT_EQ(requester.initiated(), (Outcomes{{1, kWritten, kRefused}})) << token;
  }
}

TEST_F(SoftEndpointTest, ARemoteTokenWorksOnQueuePairsOfItsOwnDomainOnly) {
  Connect(near_, far_);
  SoftSide requester(card_);
  SoftSide sibling(far_, kNdkPageBytes);
  Connect(requester, sibling);
  requester.Post(Write(1, {requester.Entry(0, 1)}, far_.region().remote_token()));
  EXPECT_EQ(requester.initiated(), (Outcomes{{1, kWritten, kOk}}));
  near_.Post(Write(2, {near_.Entry(0, 1)}, requester.region().remote_token()));
  EXPECT_EQ(near_.initiated(), (Outcomes{{2, kWritten, kRefused}})) << "alive, but of a domain that is not the peer's";
}

TEST_F(SoftEndpointTest, ATransferThatFailsMovesNothing) {
  Connect(near_, far_);
  near_.SetText(0, "abcdefgh");
  // The first half would fit, the second is beyond the end.
  near_.Post(Write(1, {near_.Entry(0, 8)}, far_.region().remote_token(), 4 * kNdkPageBytes - 4));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kRefused}}));
  EXPECT_EQ(far_.Text(4 * kNdkPageBytes - 4, 4), std::string(4, '\0'));
}

TEST_F(SoftEndpointTest, AReceiveIntoMemoryThatIsNotAllowedEndsBothSides) {
  Connect(near_, far_);
  const auto read_only = far_.Register({.remote_read = true});
  far_.Post(Receive(10, {{.address = {SoftSide::kBase}, .length = 8, .token = read_only->local_token()}}));
  far_.Post(Receive(11));
  near_.Post(Send(1, {near_.Entry(0, 4)}));
  EXPECT_EQ(far_.received(), (Outcomes{{10, kReceived, kRefused}, {11, kReceived, kCancelled}}));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, NtStatus::kRemoteResources}}));
}

// --- long turns ---

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
  card_.engine()->RunAll();
  EXPECT_EQ(sender.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kWritten, kOk}, {3, kWritten, kOk}}));
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

}  // namespace
}  // namespace rnicd::provider
