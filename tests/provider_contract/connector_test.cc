// How connections by address are made, refused and given up.

#include "tests/provider_contract/connector_fixture.h"

namespace rnicd::provider {
namespace {

INSTANTIATE_TEST_SUITE_P(Provider, ConnectorContract, ::testing::ValuesIn(ConnectingCardKinds()), NameOf);

// Data may arrive with zeros behind them.
bool Arrived(const std::string& data, const std::string& sent) {
  return data.starts_with(sent) && data.find_first_not_of('\0', sent.size()) == std::string::npos;
}

// --- making one ---

TEST_P(ConnectorContract, BothSidesSendOnceTheConnectionIsEstablished) {
  ASSERT_NO_FATAL_FAILURE(Establish());
  ExpectPass(near_, far_);
  ExpectPass(far_, near_);
  near_.Post(Read(9, {near_.Entry(0, 8)}, far_.region()->remote_token()));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated().back(), (Outcome{9, kReadOp, kOk}));
}

TEST_P(ConnectorContract, EachSideGetsTheOtherOnesAddressLimitsAndData) {
  ASSERT_TRUE(Connect(near_end_, near_,
                      {.inbound_read_limit = 3, .outbound_read_limit = 2, .private_data = std::string("a\0b", 3)})
                  .ok());
  RecordingRequests::Taken taken = requests_->Take();
  ASSERT_NE(taken.request.connector, nullptr);
  EXPECT_EQ(taken.request.local, Local(kPort));
  EXPECT_EQ(taken.request.peer, Local(50000));
  EXPECT_EQ(taken.request.offer.inbound_read_limit, 3u);
  EXPECT_EQ(taken.request.offer.outbound_read_limit, 2u);
  EXPECT_TRUE(Arrived(taken.request.offer.private_data, std::string("a\0b", 3)));
  ASSERT_TRUE(taken.request.connector
                  ->Accept(far_.pair(), {.inbound_read_limit = 2, .outbound_read_limit = 1, .private_data = "answer"})
                  .ok());
  ASSERT_EQ(near_end_.events->WaitFor(1), Events{"accepted"});
  EXPECT_EQ(near_end_.events->offer().inbound_read_limit, 2u);
  EXPECT_EQ(near_end_.events->offer().outbound_read_limit, 1u);
  EXPECT_TRUE(Arrived(near_end_.events->offer().private_data, "answer"));
}

TEST_P(ConnectorContract, DataOfTheGreatestLengthArrive) {
  const NdkAdapterInfo& info = near_.adapter().info();
  const std::string request(info.max_caller_data, 'q');
  const std::string answer(info.max_callee_data, 'a');
  ASSERT_TRUE(Connect(near_end_, near_, {.private_data = request}).ok());
  RecordingRequests::Taken taken = requests_->Take();
  ASSERT_NE(taken.request.connector, nullptr);
  EXPECT_TRUE(Arrived(taken.request.offer.private_data, request));
  ASSERT_TRUE(taken.request.connector->Reject(answer).ok());
  ASSERT_EQ(near_end_.events->WaitFor(1), Events{"CONNECTION_REFUSED"});
  EXPECT_TRUE(Arrived(near_end_.events->offer().private_data, answer));
}

TEST_P(ConnectorContract, AQueuePairIsFoundAtAnAddressOfItsCard) {
  const auto found = near_.adapter().LocateQueuePair(far_.pair().address());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, far_.adapter().addresses().front());
  EXPECT_TRUE(FailedWith(near_.adapter().LocateQueuePair("nobody").status(), ErrorReason::QP_ADDRESS_UNKNOWN));
}

// --- listeners ---

TEST_P(ConnectorContract, OnlyAnAddressOfTheAdapterServesAsTheLocalOne) {
  const NetworkAddress foreign{.ip = *IpAddress::FromText("192.0.2.1"), .port = kPort};
  for (const NetworkAddress& address : {foreign, NetworkAddress{.port = kPort}}) {
    EXPECT_TRUE(FailedWith(far_.adapter().Listen(address, requests_).status(), ErrorReason::ADDRESS_INVALID));
  }
  near_end_.connector = *near_.adapter().CreateConnector(near_end_.events);
  EXPECT_TRUE(FailedWith(near_end_.connector->Connect(near_.pair(), {.local = foreign, .peer = Local(kPort)}, kLimits),
                         ErrorReason::ADDRESS_INVALID));
  Establish();
}

TEST_P(ConnectorContract, AnAddressHasOneListenerUntilThatIsDestroyed) {
  const auto second = std::make_shared<RecordingRequests>();
  EXPECT_TRUE(FailedWith(near_.adapter().Listen(Local(kPort), second).status(), ErrorReason::ADDRESS_IN_USE));
  listener_ = nullptr;
  listener_ = Listen(second);
  ASSERT_TRUE(Connect(near_end_, near_).ok());
  EXPECT_NE(Take(*second).connector, nullptr);
}

TEST_P(ConnectorContract, EachOfTwoListenersGetsItsOwnRequests) {
  const auto other = std::make_shared<RecordingRequests>();
  const std::unique_ptr<DeviceListener> listener = Listen(other, kPort + 1);
  ConnectionEnd first;
  ConnectionEnd second;
  ASSERT_TRUE(Connect(first, near_, {.private_data = "first"}, kPort + 1).ok());
  EXPECT_TRUE(Arrived(other->Take().request.offer.private_data, "first"));
  ASSERT_TRUE(Connect(second, far_, {.private_data = "second"}).ok());
  EXPECT_TRUE(Arrived(requests_->Take().request.offer.private_data, "second"));
}

TEST_P(ConnectorContract, WithoutAListenerARequestIsRefusedAndMayBeTriedAgain) {
  listener_ = nullptr;
  ASSERT_TRUE(Connect(near_end_, near_).ok());
  ASSERT_EQ(near_end_.events->WaitFor(1), Events{"CONNECTION_REFUSED"});
  listener_ = Listen(requests_);
  ASSERT_TRUE(Connect(near_end_, near_).ok());
  far_end_ = Take(*requests_);
  ASSERT_TRUE(far_end_.connector->Accept(far_.pair(), kLimits).ok());
  ASSERT_EQ(near_end_.events->WaitFor(2), (Events{"CONNECTION_REFUSED", "accepted"}));
  ASSERT_TRUE(Complete().ok());
  ExpectEvents({"CONNECTION_REFUSED", "accepted", "established"}, {"established"});
  ExpectPass(near_, far_);
}

TEST_P(ConnectorContract, ARequestThatWasTakenOutlivesItsListener) {
  ASSERT_NO_FATAL_FAILURE(Request());
  listener_ = nullptr;
  ASSERT_TRUE(far_end_.connector->Accept(far_.pair(), kLimits).ok());
  ASSERT_EQ(near_end_.events->WaitFor(1), Events{"accepted"});
  ASSERT_TRUE(Complete().ok());
  ExpectEvents({"accepted", "established"}, {"established"});
}

TEST_P(ConnectorContract, ARequestThatItsListenerDoesNotTakeIsRefused) {
  requests_->on_request = [](ConnectionRequest&, RecordingConnector&) { return false; };
  ASSERT_TRUE(Connect(near_end_, near_).ok());
  EXPECT_EQ(near_end_.events->WaitFor(1), Events{"CONNECTION_REFUSED"});
}

// --- refusing and giving up ---

TEST_P(ConnectorContract, ARejectedRequestMayBeTriedAgain) {
  ASSERT_NO_FATAL_FAILURE(Request());
  ASSERT_TRUE(far_end_.connector->Reject("no").ok());
  ExpectEvents({"CONNECTION_REFUSED"}, {});
  EXPECT_TRUE(Arrived(near_end_.events->offer().private_data, "no"));
  ASSERT_TRUE(Connect(near_end_, near_).ok());
  far_end_ = Take(*requests_);
  ASSERT_TRUE(far_end_.connector->Accept(far_.pair(), kLimits).ok());
  EXPECT_EQ(near_end_.events->WaitFor(2), (Events{"CONNECTION_REFUSED", "accepted"}));
}

TEST_P(ConnectorContract, ARequestThatIsDestroyedUndecidedIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Request());
  Destroy(far_end_);
  ExpectEvents({"CONNECTION_REFUSED"}, {});
}

TEST_P(ConnectorContract, ARequestThatIsWithdrawnCannotBeDecided) {
  ASSERT_NO_FATAL_FAILURE(Request());
  Destroy(near_end_);
  ExpectEvents({}, {"CONNECTION_ABORTED"});
  EXPECT_TRUE(FailedWith(far_end_.connector->Accept(far_.pair(), kLimits), ErrorReason::CONNECTION_ABORTED));
  EXPECT_TRUE(FailedWith(far_end_.connector->Reject("no"), ErrorReason::CONNECTION_ABORTED));
  ExpectEvents({}, {"CONNECTION_ABORTED"});
}

TEST_P(ConnectorContract, TheEndOfTheActiveSideFailsAccept) {
  ASSERT_NO_FATAL_FAILURE(Answer());
  Destroy(near_end_);
  ExpectEvents({"accepted"}, {"CONNECTION_ABORTED"});
}

TEST_P(ConnectorContract, TheActiveSideMayRejectTheAnswer) {
  ASSERT_NO_FATAL_FAILURE(Answer());
  ASSERT_TRUE(near_end_.connector->Reject("too slow").ok());
  ExpectEvents({"accepted"}, {"CONNECTION_REFUSED"});
  EXPECT_TRUE(Arrived(far_end_.events->offer().private_data, "too slow"));
}

TEST_P(ConnectorContract, TheEndOfThePassiveSideFailsCompleteConnect) {
  ASSERT_NO_FATAL_FAILURE(Answer());
  Destroy(far_end_);
  card_->Settle();
  ASSERT_TRUE(Complete().ok());
  ExpectEvents({"accepted", "CONNECTION_ABORTED"}, {});
}

TEST_P(ConnectorContract, AnAnswerThatIsWithdrawnCannotBeRejected) {
  ASSERT_NO_FATAL_FAILURE(Answer());
  Destroy(far_end_);
  card_->Settle();
  EXPECT_TRUE(FailedWith(near_end_.connector->Reject("no"), ErrorReason::CONNECTION_ABORTED));
  ExpectEvents({"accepted"}, {});
}

TEST_P(ConnectorContract, AQueuePairThatCannotConnectFailsBothSides) {
  for (const bool at_near : {true, false}) {
    ProviderSide near(near_);
    ProviderSide far(far_);
    ASSERT_NO_FATAL_FAILURE(Answer(near, far));
    (at_near ? near : far).pair().Flush();
    ASSERT_TRUE(Complete().ok());
    if (at_near) {
      ExpectEvents({"accepted", "QP_NOT_CONNECTABLE"}, {"CONNECTION_ABORTED"});
    } else {
      ExpectEvents({"accepted", "established", "disconnected"}, {"QP_NOT_CONNECTABLE"});
    }
    Clear();
  }
}

}  // namespace
}  // namespace rnicd::provider
