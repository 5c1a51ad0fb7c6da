// How queue pairs connect, what may be posted when, and how their requests end.

#include <algorithm>
#include <cctype>

#include "tests/provider_contract/contract_fixture.h"

namespace rnicd::provider {
namespace {

using ConnectionContract = ProviderContract;

INSTANTIATE_TEST_SUITE_P(Provider, ConnectionContract, ::testing::ValuesIn(CardKinds()), NameOf);

TEST_P(ConnectionContract, AnUnknownAdapterIsRefused) {
  const std::string name = adapter();
  std::string capitals = name;
  std::ranges::transform(capitals, capitals.begin(), [](unsigned char letter) { return std::toupper(letter); });
  const std::string next = name.substr(0, name.size() - 1) + "1";
  for (const std::string& unknown : {next, std::string(), capitals, name + " ", name + ":1"}) {
    EXPECT_TRUE(FailedWith(provider().OpenAdapter(unknown).status(), ErrorReason::ADAPTER_NOT_FOUND)) << unknown;
  }
}

// --- connecting ---

TEST_P(ConnectionContract, AMadeUpAddressIsRefusedAndChangesNothing) {
  for (const char* const address : {"nobody", ""}) {
    EXPECT_TRUE(FailedWith(near_.pair().Connect(address), ErrorReason::QP_ADDRESS_UNKNOWN)) << address;
  }
  EXPECT_EQ(near_.state(), QueuePairState::kInit);
  EXPECT_TRUE(near_.ConnectTo(far_).ok());
}

TEST_P(ConnectionContract, TheAddressIsUnknownAfterShutdown) {
  const std::string address = far_.pair().address();
  far_.Shutdown();
  EXPECT_TRUE(FailedWith(near_.pair().Connect(address), ErrorReason::QP_ADDRESS_UNKNOWN));
}

TEST_P(ConnectionContract, ItConnectsOnceInItsLife) {
  EXPECT_TRUE(near_.ConnectTo(far_).ok());
  EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::QP_NOT_CONNECTABLE));
  near_.pair().Flush();
  EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::QP_NOT_CONNECTABLE));
  far_.Post(Receive(10));
  far_.pair().Flush();
  ASSERT_TRUE(far_.Received(1));
  EXPECT_EQ(far_.received(), (Outcomes{{10, kReceived, kCancelled}}));
  EXPECT_TRUE(FailedWith(far_.ConnectTo(near_), ErrorReason::QP_NOT_CONNECTABLE)) << "an error is for life";
}

TEST_P(ConnectionContract, OnlyReceivesCanBePostedBeforeConnecting) {
  EXPECT_EQ(near_.state(), QueuePairState::kInit);
  EXPECT_TRUE(near_.Refuses(Send(1), ErrorReason::QP_NOT_CONNECTED));
  EXPECT_TRUE(near_.Refuses(Read(2), ErrorReason::QP_NOT_CONNECTED));
  near_.Post(Receive(10));
  EXPECT_TRUE(near_.received().empty());
  Connect(near_, far_);
  far_.Post(Send(3));
  ASSERT_TRUE(near_.Received(1));
  EXPECT_EQ(near_.received(), (Outcomes{{10, kReceived, kOk}}));
}

TEST_P(ConnectionContract, WhatNeedsThePeerWaitsUntilItHasConnectedToo) {
  far_.Post(Receive(10));
  ASSERT_TRUE(near_.ConnectTo(far_).ok());
  near_.Post(Send(1));
  near_.Post(Write(2, {near_.Entry(0, 1)}, far_.region()->remote_token()));
  card_->Settle();
  EXPECT_TRUE(near_.initiated().empty());
  EXPECT_EQ(near_.state(), QueuePairState::kReadyToSend);
  ASSERT_TRUE(far_.ConnectTo(near_).ok());
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}, {2, kWritten, kOk}}));
}

TEST_P(ConnectionContract, ATransferOfNoBytesNeedsNoToken) {
  Connect(near_, far_);
  near_.Post(Write(1, {}, RemoteToken{0xdead}));
  near_.Post(Read(2, {near_.Entry(0, 0)}, RemoteToken{}));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kReadOp, kOk}}));
}

TEST_P(ConnectionContract, NeitherSideNeedsToConnectFirst) {
  ProviderSide near_too(near_);
  ProviderSide far_too(far_);
  for (auto [first, second] : {std::pair(&near_, &far_), std::pair(&far_too, &near_too)}) {
    ASSERT_TRUE(first->ConnectTo(*second).ok());
    first->Post(Send(1));
    second->Post(Receive(10));
    card_->Settle();
    EXPECT_TRUE(first->initiated().empty()) << "a receive alone opens no connection";
    ASSERT_TRUE(second->ConnectTo(*first).ok());
    second->Post(Send(2));
    first->Post(Receive(20));
    ASSERT_TRUE(first->Initiated(1) && second->Initiated(1));
    EXPECT_EQ(first->initiated(), (Outcomes{{1, kSent, kOk}}));
    EXPECT_EQ(second->initiated(), (Outcomes{{2, kSent, kOk}}));
  }
}

// An address is passed around, so strangers may have it.
TEST_P(ConnectionContract, AStrangerCannotBreakAConnection) {
  Connect(near_, far_);
  {
    ProviderSide stranger(provider(), adapter());
    ASSERT_TRUE(stranger.ConnectTo(far_).ok());
    stranger.Post(Send(1));
    ASSERT_TRUE(stranger.Initiated(1));
    EXPECT_EQ(stranger.initiated(), (Outcomes{{1, kSent, kTimedOut}}));
    ProviderSide other(provider(), adapter());
    ASSERT_TRUE(other.ConnectTo(near_).ok());
    other.pair().Flush();
  }
  EXPECT_EQ(far_.state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(far_.peer_gone(), 0);
  EXPECT_EQ(near_.peer_gone(), 0);
  far_.Post(Receive(10));
  near_.Post(Send(1));
  ASSERT_TRUE(near_.Initiated(1));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}}));
}

// --- by address ---

TEST_P(ConnectionContract, ACardWithoutAddressesHasNoConnectionsByAddress) {
  DeviceAdapter& adapter = near_.adapter();
  ASSERT_EQ(adapter.addresses().empty(), !GetParam().connects);
  if (!GetParam().connects) {
    EXPECT_TRUE(FailedWith(adapter.Listen({}, {}).status(), ErrorReason::DEVICE_NOT_CAPABLE));
    EXPECT_TRUE(FailedWith(adapter.CreateConnector({}).status(), ErrorReason::DEVICE_NOT_CAPABLE));
    EXPECT_TRUE(FailedWith(adapter.LocateQueuePair(far_.pair().address()).status(), ErrorReason::DEVICE_NOT_CAPABLE));
  }
}

// --- the end ---

TEST_P(ConnectionContract, FlushCancelsEverythingInOrder) {
  Connect(near_, far_);
  near_.Post(Send(1));
  near_.Post(Silent(Write(2)));
  near_.Post(Read(3));
  near_.Post(Receive(10));
  near_.Post(Receive(11));
  near_.pair().Flush();
  near_.pair().Flush();
  ASSERT_TRUE(near_.Initiated(3) && near_.Received(2));
  EXPECT_EQ(near_.initiated(),
            (Outcomes{{1, kSent, kCancelled}, {2, kWritten, kCancelled}, {3, OperationType::kRead, kCancelled}}))
      << "silent requests too";
  EXPECT_EQ(near_.received(), (Outcomes{{10, kReceived, kCancelled}, {11, kReceived, kCancelled}}));
  EXPECT_EQ(near_.state(), QueuePairState::kError);
  EXPECT_EQ(near_.peer_gone(), 0);
  EXPECT_TRUE(far_.listener().WaitForPeerGone());
}

TEST_P(ConnectionContract, ThePeerOfOneThatEndsIsToldAndKeepsItsReceives) {
  Connect(near_, far_);
  far_.Post(Receive(10));
  near_.pair().Disconnect();
  near_.Shutdown();
  EXPECT_TRUE(far_.listener().WaitForPeerGone());
  card_->Settle();
  EXPECT_TRUE(far_.received().empty()) << "they are their owner's to flush";
  EXPECT_EQ(far_.state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(near_.peer_gone(), 0);
}

TEST_P(ConnectionContract, WhatNeedsAPeerThatIsGoneTimesOutAndTheRestIsCancelled) {
  for (const bool peer_had_connected : {true, false}) {
    ProviderSide side(near_);
    ProviderSide peer(far_);
    ASSERT_TRUE(side.ConnectTo(peer).ok());
    ASSERT_TRUE(!peer_had_connected || peer.ConnectTo(side).ok());
    side.Post(Silent(Send(1)));
    side.Post(Send(2));
    side.Post(Receive(10));
    peer.Shutdown();
    ASSERT_TRUE(side.Initiated(2) && side.Received(1));
    EXPECT_EQ(side.initiated(), (Outcomes{{1, kSent, kTimedOut}, {2, kSent, kCancelled}}));
    EXPECT_EQ(side.received(), (Outcomes{{10, kReceived, kCancelled}}));
    EXPECT_TRUE(side.listener().WaitForPeerGone());
  }
}

TEST_P(ConnectionContract, AQueuePairConnectedToItselfEndsAsOne) {
  for (const bool by_itself : {true, false}) {
    ProviderSide side(near_);
    ASSERT_TRUE(side.ConnectTo(side).ok());
    if (by_itself) {
      side.Post(Receive(10));
      side.Post(Write(1, {side.Entry(0, 1)}, RemoteToken{0xdead}));
      ASSERT_TRUE(side.Initiated(1) && side.Received(1));
      EXPECT_EQ(side.initiated(), (Outcomes{{1, kWritten, kViolation}}));
      EXPECT_EQ(side.received(), (Outcomes{{10, kReceived, kCancelled}}));
    } else {
      side.Post(Send(1));
      side.Post(Silent(Send(2)));
      side.pair().Disconnect();
      EXPECT_EQ(side.initiated(), (Outcomes{{1, kSent, kCancelled}, {2, kSent, kCancelled}}));
    }
    EXPECT_EQ(side.peer_gone(), 0) << "it knows already";
  }
}

TEST_P(ConnectionContract, AfterAFlushReceivesAreCancelledAndNothingElseIsAccepted) {
  Connect(near_, far_);
  near_.pair().Flush();
  EXPECT_TRUE(near_.Refuses(Send(1), ErrorReason::QP_NOT_CONNECTED));
  near_.Post(Receive(10));
  ASSERT_TRUE(near_.Received(1));
  EXPECT_EQ(near_.received(), (Outcomes{{10, kReceived, kCancelled}}));
  near_.Shutdown();
  EXPECT_TRUE(near_.Refuses(Receive(11), ErrorReason::QP_NOT_CONNECTED)) << "its completion could not be reported";
  near_.pair().Flush();
  near_.pair().Kick();
  near_.Shutdown();
}

TEST_P(ConnectionContract, WhoConnectsToAPeerThatHasFailedIsTold) {
  for (const bool failed_once_connected : {true, false}) {
    ProviderSide failed(near_);
    ProviderSide side(far_);
    ASSERT_TRUE(!failed_once_connected || failed.ConnectTo(side).ok());
    failed.pair().Flush();
    EXPECT_EQ(side.peer_gone(), 0) << "it has not connected yet";
    ASSERT_TRUE(side.ConnectTo(failed).ok());
    EXPECT_TRUE(side.listener().WaitForPeerGone());
    side.Post(Send(1));
    ASSERT_TRUE(side.Initiated(1));
    EXPECT_EQ(side.initiated(), (Outcomes{{1, kSent, kTimedOut}}));
    failed.Shutdown();
  }
}

TEST_P(ConnectionContract, AReceiveThatIsTooShortEndsBothSides) {
  Connect(near_, far_);
  near_.Post(Send(1, {near_.Entry(0, 4)}));
  near_.Post(Send(2));
  ASSERT_TRUE(far_.pair().Enqueue(Receive(10, {far_.Entry(0, 2), far_.Entry(8, 1)})).ok());
  ASSERT_TRUE(far_.pair().Enqueue(Receive(11, {far_.Entry(0, 100)})).ok());
  far_.pair().Kick();
  ASSERT_TRUE(far_.Received(2) && near_.Initiated(2));
  EXPECT_EQ(far_.received(), (Outcomes{{10, kReceived, NtStatus::kBufferOverflow}, {11, kReceived, kCancelled}}));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, NtStatus::kRemoteResources}, {2, kSent, kCancelled}}));
  EXPECT_TRUE(EndsInError(near_) && EndsInError(far_));
  EXPECT_TRUE(far_.listener().WaitForPeerGone());
}

// Its sender waits for the peer's answer, besides that of the card.
TEST_P(ConnectionContract, TheEndOfAPeerThatHasSomethingToInvalidateIsReported) {
  Connect(near_, far_);
  near_.Post(Send(1, {}, {.invalidate = far_.region()->remote_token()}));
  card_->Settle();
  far_.Shutdown();
  ASSERT_TRUE(near_.Initiated(1));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kTimedOut}}));
  EXPECT_TRUE(near_.listener().WaitForPeerGone());
}

// A caller may reuse the memory as soon as it sees the completion.
TEST_P(ConnectionContract, WhatARequestHeldIsReleasedBeforeItIsReported) {
  Connect(near_, far_);
  std::vector<std::weak_ptr<int>> held;
  const auto holding = [&held](WorkRequest request) {
    auto keep_alive = std::make_shared<int>(0);
    held.emplace_back(keep_alive);
    request.keep_alive = std::move(keep_alive);
    return request;
  };
  const auto check = [&held](const Completion& completion) {
    EXPECT_TRUE(held[completion.request_context].expired()) << completion.request_context;
  };
  WorkRequest requests[] = {holding(Receive(0)), holding(Send(1)), holding(Send(2)), holding(Receive(3))};
  near_.listener().on_completion = check;
  far_.listener().on_completion = check;
  far_.Post(std::move(requests[0]));
  near_.Post(std::move(requests[1]));
  near_.Post(std::move(requests[2]));
  near_.Post(std::move(requests[3]));
  ASSERT_TRUE(far_.Received(1) && near_.Initiated(1));
  card_->Settle();
  EXPECT_FALSE(held[2].expired()) << "it waits for a receive";
  near_.pair().Flush();
  ASSERT_TRUE(near_.Initiated(2) && near_.Received(1));
}

TEST_P(ConnectionContract, AQueueOfNoDepthTakesNothing) {
  ProviderSide none(provider(), adapter(), QueuePairLimits{});
  Connect(none, far_);
  EXPECT_TRUE(none.Refuses(Send(1), ErrorReason::QUEUE_FULL));
  EXPECT_TRUE(none.Refuses(Receive(2), ErrorReason::QUEUE_FULL));
}

}  // namespace
}  // namespace rnicd::provider
