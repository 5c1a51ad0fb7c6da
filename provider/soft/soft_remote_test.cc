// Connections and transfers between the soft cards of two daemons.

#include "provider/soft/soft_remote.h"

#include <gmock/gmock.h>

#include "provider/soft/two_daemons_fixture_test.h"

namespace rnicd::provider {
namespace {

using ::testing::IsEmpty;

constexpr NtStatus kTimedOut = NtStatus::kIoTimeout;

// --- connections ---

TEST_F(TwoDaemons, ARejectionsPrivateDataArrive) {
  Request({.private_data = "ask"});
  EXPECT_EQ(taken_.request.peer, near_address_);
  EXPECT_EQ(taken_.request.offer.private_data, "ask" + std::string(53, '\0'));
  ASSERT_TRUE(taken_.request.connector->Reject("no").ok());
  RunAll();
  EXPECT_EQ(near_heard(), Events{"CONNECTION_REFUSED"});
  EXPECT_EQ(near_events_->offer().private_data, "no" + std::string(146, '\0'));
}

TEST_F(TwoDaemons, APortWithoutListenerRefuses) {
  listener_.reset();
  ASSERT_TRUE(Ask().ok());
  RunAll();
  EXPECT_EQ(near_heard(), Events{"CONNECTION_REFUSED"});
}

TEST_F(TwoDaemons, BothEndsHearOfTheOthersDisconnect) {
  Connect();
  ASSERT_TRUE(near_connector_->Disconnect().ok());
  RunAll();
  EXPECT_EQ(far_heard(), (Events{"established", "disconnected"}));
  ASSERT_TRUE(taken_.request.connector->Disconnect().ok());
  RunAll();
  EXPECT_EQ(near_heard(), (Events{"accepted", "established", "disconnected"}));
}

TEST_F(TwoDaemons, AConnectWithoutLinkFindsNoHost) {
  near_daemon_.network->Lose();
  ASSERT_TRUE(Ask().ok());
  RunAll();
  EXPECT_EQ(near_heard(), Events{"HOST_UNREACHABLE"});
}

TEST_F(TwoDaemons, AnotherDaemonsQueuePairIsNotFoundByItsAddressAlone) {
  EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::QP_ADDRESS_UNKNOWN));
}

TEST_F(TwoDaemons, ARequestFromAnAddressThatThePeerDoesNotHaveIsIgnored) {
  near_daemon_.network->Arrive(SoftMessage{.kind = SoftMessage::Kind::kRequest,
                                           .from = {.ip = near_address_.ip, .port = 1},
                                           .to = near_address_,
                                           .connector = 3,
                                           .queue_pair = "12345678"});
  const int sent = near_daemon_.network->sent();
  RunAll();
  EXPECT_EQ(near_daemon_.network->sent(), sent);
}

// --- transfers ---

class TwoConnected : public TwoDaemons {
 protected:
  TwoConnected() { TwoDaemons::Connect(); }

  // More than a piece, of which no two bytes in a row are the same.
  static std::vector<std::byte> Long() {
    std::vector<std::byte> bytes(2 * kPieceBytes + 5);
    for (size_t index = 0; index < bytes.size(); ++index) {
      bytes[index] = static_cast<std::byte>(index * 7 + index / kPieceBytes);
    }
    return bytes;
  }
  static ScatterGatherEntry Host(std::span<std::byte> bytes) {
    return {.host = bytes, .length = static_cast<uint32_t>(bytes.size())};
  }
  static std::unique_ptr<DeviceMemoryRegion> Register(ProviderSide& side, std::span<std::byte> bytes) {
    return *side.domain().RegisterMemory(
        {.base = {kSideBase}, .length = bytes.size(), .runs = {&bytes, 1}, .rights = kAllRights});
  }
};

TEST_F(TwoConnected, ASendArrivesInTheOldestReceive) {
  far_.Post(Receive(10, {far_.Entry(0, 8)}));
  far_.Post(Receive(11, {far_.Entry(8, 8)}));
  SetText(near_, 100, "hello");
  near_.Post(Send(1, {near_.Entry(100, 5)}, {.solicit = true}));
  EXPECT_THAT(near_.initiated(), IsEmpty()) << "before the answer";
  RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}}));
  const std::vector<Completion> received = far_.listener().completions(WorkQueue::kReceive);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].request_context, 10U);
  EXPECT_EQ(received[0].bytes, 5U);
  EXPECT_TRUE(received[0].solicited);
  EXPECT_EQ(Text(far_, 0, 5), "hello");
}

TEST_F(TwoConnected, BothSidesSend) {
  far_.Post(Receive(10, {far_.Entry(0, 8)}));
  near_.Post(Receive(20, {near_.Entry(0, 8)}));
  SetText(near_, 100, "there");
  SetText(far_, 100, "back");
  near_.Post(Send(1, {near_.Entry(100, 5)}));
  far_.Post(Send(2, {far_.Entry(100, 4)}));
  RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}}));
  EXPECT_EQ(far_.initiated(), (Outcomes{{2, kSent, kOk}}));
  EXPECT_EQ(Text(far_, 0, 5), "there");
  EXPECT_EQ(Text(near_, 0, 4), "back");
}

TEST_F(TwoConnected, WritesAndReadsReachThePeersMemoryInOrder) {
  SetText(near_, 0, "write");
  near_.Post(Write(1, {near_.Entry(0, 5)}, far_token(), 200));
  near_.Post(Silent(Write(2, {}, far_token())));
  near_.Post(Read(3, {near_.Entry(300, 2), near_.Entry(400, 3)}, far_token(), 200));
  RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kOk}, {3, kReadOp, kOk}}));
  EXPECT_EQ(Text(far_, 200, 5), "write");
  EXPECT_EQ(Text(near_, 300, 2) + Text(near_, 400, 3), "write");
}

TEST_F(TwoConnected, LongTransfersAreCutAndArriveWhole) {
  std::vector<std::byte> source = Long();
  std::vector<std::byte> memory(source.size() + 1);
  std::vector<std::byte> sink(source.size());
  std::vector<std::byte> received(source.size());
  const std::unique_ptr<DeviceMemoryRegion> region = Register(far_, memory);
  const std::span<std::byte> parts(received);
  far_.Post(Receive(10, {Host(parts.first(3)), Host(parts.subspan(3))}));
  near_.Post(Write(1, {Host(source)}, region->remote_token(), 1));
  near_.Post(
      Read(2, {Host(std::span(sink).first(100)), Host(std::span(sink).subspan(100))}, region->remote_token(), 1));
  near_.Post(Send(3, {Host(source)}));
  RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kReadOp, kOk}, {3, kSent, kOk}}));
  EXPECT_TRUE(std::ranges::equal(std::span(memory).subspan(1), source));
  EXPECT_EQ(sink, source);
  EXPECT_EQ(received, source);
  EXPECT_EQ(far_.received(), (Outcomes{{10, kReceived, kOk}}));
}

TEST_F(TwoConnected, ASendWithoutReceiveWaitsAndKeepsNothingAtThePeer) {
  SetText(near_, 0, "later");
  near_.Post(Send(1, {near_.Entry(0, 5)}));
  RunAll();
  EXPECT_THAT(near_.initiated(), IsEmpty());
  SetText(near_, 0, "LATER");
  far_.Post(Receive(10, {far_.Entry(0, 8)}));
  RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}}));
  EXPECT_EQ(Text(far_, 0, 5), "LATER") << "it was sent again";
}

TEST_F(TwoConnected, ASendInvalidatesAtTheReceiver) {
  const std::shared_ptr<DeviceFastRegion> region = *far_.domain().CreateFastRegion(16, true);
  const RemoteToken token = far_.Post(FastRegister(5, region, {far_.pages().page(1)}));
  EXPECT_TRUE(region->registered());
  far_.Post(Receive(10));
  near_.Post(Send(1, {}, {.invalidate = token}));
  RunAll();
  EXPECT_FALSE(region->registered());
  const std::vector<Completion> received = far_.listener().completions(WorkQueue::kReceive);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].type, OperationType::kReceiveAndInvalidate);
  EXPECT_EQ(received[0].invalidated, token);
}

TEST_F(TwoDaemons, ARequestThatOvertakesTheEndOfConnectingIsSentAgain) {
  Request();
  ASSERT_TRUE(taken_.request.connector->Accept(far_.pair(), {}).ok());
  RunAll();
  far_.Post(Receive(10));
  ASSERT_TRUE(near_connector_->CompleteConnect({}).ok());
  near_.Post(Send(1));
  ASSERT_EQ(far_daemon_.worker->size(), 2U);
  ASSERT_TRUE(far_daemon_.worker->RunJob(1)) << "the send before the end of connecting";
  RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}}));
}

// --- failures ---

TEST_F(TwoConnected, AccessThatTheMemoryRefusesMovesNothingAndEndsBothSides) {
  std::vector<std::byte> source = Long();
  std::vector<std::byte> memory(source.size() - 1);
  const std::unique_ptr<DeviceMemoryRegion> region = Register(far_, memory);
  near_.Post(Write(1, {Host(source)}, region->remote_token()));
  near_.Post(Send(2));
  RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, NtStatus::kAccessViolation}, {2, kSent, kCancelled}}));
  EXPECT_TRUE(near_.listener().completions(WorkQueue::kInitiator)[0].at_peer);
  EXPECT_EQ(memory, std::vector<std::byte>(memory.size()));
  EXPECT_EQ(far_.state(), QueuePairState::kError);
  EXPECT_EQ(far_.peer_gone(), 1);
}

TEST_F(TwoConnected, AReceiveThatIsTooSmallFailsBothSides) {
  far_.Post(Receive(10, {far_.Entry(0, 4)}));
  near_.Post(Send(1, {near_.Entry(0, 5)}));
  RunAll();
  EXPECT_EQ(far_.received(), (Outcomes{{10, kReceived, NtStatus::kBufferOverflow}}));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, NtStatus::kRemoteResources}}));
  EXPECT_EQ(far_.state(), QueuePairState::kError);
}

TEST_F(TwoConnected, AQueuePairThatEndsEndsItsPeersRequests) {
  near_.Post(Send(1));
  near_.Post(Send(2));
  RunAll();
  far_.Shutdown();
  RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kTimedOut}, {2, kSent, kCancelled}}));
  EXPECT_EQ(near_.peer_gone(), 1);
}

TEST_F(TwoConnected, ALostLinkEndsRequestsAndConnectionsOnBothSides) {
  near_.Post(Receive(10));
  near_.Post(Send(1));
  RunAll();
  near_daemon_.network->Lose();
  RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kTimedOut}}));
  EXPECT_EQ(near_.received(), (Outcomes{{10, kReceived, kCancelled}}));
  EXPECT_EQ(near_.peer_gone(), 1);
  EXPECT_EQ(far_.peer_gone(), 1);
  EXPECT_EQ(near_heard().back(), "disconnected");
  EXPECT_EQ(far_heard().back(), "disconnected");
  far_.Post(Send(2));
  EXPECT_EQ(far_.initiated(), (Outcomes{{2, kSent, kTimedOut}}));
}

TEST_F(TwoConnected, AHalfReceivedMessageIsCancelledWithItsQueuePair) {
  std::vector<std::byte> source = Long();
  std::vector<std::byte> received(source.size());
  far_.Post(Receive(10, {Host(received)}));
  near_.Post(Send(1, {Host(source)}));
  far_daemon_.worker->RunAll();
  EXPECT_THAT(far_.received(), IsEmpty());
  near_daemon_.network->Lose();
  RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kTimedOut}}));
  far_.Shutdown();
  EXPECT_EQ(far_.received(), (Outcomes{{10, kReceived, kCancelled}}));
}

TEST_F(TwoConnected, ADisconnectDoesNotWaitForThePeer) {
  near_.Post(Send(1));
  near_.pair().Disconnect();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kCancelled}}));
  RunAll();
  EXPECT_EQ(far_.peer_gone(), 1);
}

TEST_F(TwoConnected, ManyQueuePairsShareTheLinkInTurns) {
  constexpr size_t kPairs = 100;
  std::vector<std::unique_ptr<ProviderSide>> near;
  std::vector<std::unique_ptr<ProviderSide>> far;
  std::vector<std::unique_ptr<DeviceConnector>> ends;
  for (uint64_t count = 0; count < kPairs; ++count) {
    near.push_back(std::make_unique<ProviderSide>(near_));
    far.push_back(std::make_unique<ProviderSide>(far_));
    const auto events = std::make_shared<RecordingConnector>();
    ends.push_back(*near_.adapter().CreateConnector(events));
    const NetworkAddress local{.ip = near_address_.ip, .port = static_cast<uint16_t>(50001 + count)};
    ASSERT_TRUE(ends.back()->Connect(near.back()->pair(), {.local = local, .peer = far_address_}, {}).ok());
    RunAll();
    taken_ = requests_->Take();
    ASSERT_TRUE(taken_.request.connector->Accept(far.back()->pair(), {}).ok());
    RunAll();
    ASSERT_TRUE(ends.back()->CompleteConnect({}).ok());
    ends.push_back(std::move(taken_.request.connector));
    RunAll();
    far.back()->Post(Receive(10));
  }
  const int before = near_daemon_.network->sent();
  for (const auto& side : near) {
    side->Post(Send(1));
  }
  EXPECT_EQ(near_daemon_.network->sent(), before + 64) << "the others wait for answers";
  RunAll();
  for (const auto& side : near) {
    EXPECT_EQ(side->initiated(), (Outcomes{{1, kSent, kOk}}));
  }
}

// Whatever a peer says in frames of the right form, it reaches no queue pair but its own.
TEST_F(TwoConnected, FramesFromStrangersAreAnsweredWithGone) {
  ProviderSide other(near_);
  uint64_t number = 0;
  std::memcpy(&number, other.pair().address().data(), sizeof(number));
  const int sent = near_daemon_.network->sent();
  near_daemon_.network->Arrive(SoftRequest{.kind = SoftRequest::Kind::kRead,
                                           .to = number,
                                           .from = 99,
                                           .serial = 1,
                                           .total = 5,
                                           .address = kSideBase,
                                           .token = other.region()->remote_token().value});
  near_daemon_.network->Arrive(SoftReply{.result = SoftReply::Result::kGone, .to = number, .from = 99});
  near_daemon_.network->Arrive(SoftReply{.result = SoftReply::Result::kDone, .to = number, .from = 99, .serial = 1});
  RunAll();
  EXPECT_EQ(near_daemon_.network->sent(), sent + 1);
  EXPECT_EQ(other.state(), QueuePairState::kInit);
}

TEST_F(TwoConnected, AnAnswerOfTheWrongLengthEndsTheConnection) {
  near_.Post(Read(1, {near_.Entry(0, 5)}, far_token()));
  uint64_t near_number = 0;
  uint64_t far_number = 0;
  std::memcpy(&near_number, near_.pair().address().data(), sizeof(near_number));
  std::memcpy(&far_number, far_.pair().address().data(), sizeof(far_number));
  near_daemon_.network->Arrive(SoftReply{
      .result = SoftReply::Result::kDone, .to = near_number, .from = far_number, .serial = 1, .bytes = "four"});
  near_daemon_.worker->RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, kTimedOut}}));
}

}  // namespace
}  // namespace rnicd::provider
