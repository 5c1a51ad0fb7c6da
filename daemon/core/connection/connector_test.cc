#include "daemon/core/connection/connector.h"

#include "daemon/core/connection/connection_fixture_test.h"

namespace rnicd::core {
namespace {

TEST_F(ConnectionTest, BytesPassOnceBothSidesHaveEndedTheirCalls) {
  MakeConnection();
  server_.MustPost(server_pair_, {Receive()});
  client_.MustPost(client_pair_, {Send()});
  EXPECT_EQ(client_.Statuses(), std::vector{NtStatus::kSuccess});
  EXPECT_EQ(server_.Statuses(), std::vector{NtStatus::kSuccess});
}

TEST_F(ConnectionTest, NothingIsSentBeforeTheConnectionIsComplete) {
  server_.Listen();
  const ConnectorId active = client_.NewConnector();
  const QueuePairId pair = client_.Pair();
  const auto connect = client_.StartConnect(client_.To(server_.listening_at, active, pair));
  server_.StartAccept(server_.WaitRequest(), server_.Pair());
  ASSERT_TRUE(Result(connect).ok());
  EXPECT_THAT(client_.Post(pair, {Send()}).failure, FailsWith(ErrorReason::QP_NOT_CONNECTED));
  EXPECT_TRUE(client_.Post(pair, {Receive()}).failure.ok());
}

TEST_F(ConnectionTest, LimitsAreWhatBothSidesAllow) {
  server_.Listen();
  const ConnectorId active = client_.NewConnector();
  ConnectArguments arguments = client_.To(server_.listening_at, active, client_.Pair());
  arguments.limits = {.inbound = 3, .outbound = UINT32_MAX};
  arguments.private_data = "hello";
  const auto connect = client_.StartConnect(arguments);
  const ConnectorId passive = server_.WaitRequest();
  const auto offered = server_.session->Begin()->connectors().Data(passive);
  ASSERT_TRUE(offered.ok()) << offered.status();
  EXPECT_EQ(offered->private_data.substr(0, 5), "hello");
  EXPECT_EQ(offered->limits.inbound, 16u);
  EXPECT_EQ(offered->limits.outbound, 3u);
  server_.StartAccept(passive, server_.Pair(), {.inbound = 2, .outbound = 9});
  ASSERT_TRUE(Result(connect).ok());
  const auto answered = client_.session->Begin()->connectors().Data(active);
  ASSERT_TRUE(answered.ok()) << answered.status();
  EXPECT_EQ(answered->limits.inbound, 3u);
  EXPECT_EQ(answered->limits.outbound, 2u);
}

TEST_F(ConnectionTest, WithoutReadsNoneCanBePosted) {
  server_.Listen();
  const ConnectorId active = client_.NewConnector();
  const QueuePairId pair = client_.Pair();
  ConnectArguments arguments = client_.To(server_.listening_at, active, pair);
  arguments.limits = {.inbound = 16, .outbound = 0};
  const auto connect = client_.StartConnect(arguments);
  server_.StartAccept(server_.WaitRequest(), server_.Pair());
  ASSERT_TRUE(Result(connect).ok());
  ASSERT_TRUE(Result(client_.StartComplete(active)).ok());
  EXPECT_THAT(client_.Post(pair, {Read({}, kRegionBase, RemoteToken{1})}).failure,
              FailsWith(ErrorReason::READS_NOT_AGREED));
}

TEST_F(ConnectionTest, ARejectionHasDataAndLeavesConnectorAndQueuePairIdle) {
  server_.Listen();
  const ConnectorId active = client_.NewConnector();
  const QueuePairId pair = client_.Pair();
  const auto first = client_.StartConnect(client_.To(server_.listening_at, active, pair));
  const ConnectorId refused = server_.WaitRequest();
  ASSERT_TRUE(server_.session->Begin()->connectors().Reject(refused, "full").ok());
  EXPECT_THAT(Result(first), FailsWith(ErrorReason::CONNECTION_REFUSED));
  const auto data = client_.session->Begin()->connectors().Data(active);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->private_data.substr(0, 4), "full");
  const auto second = client_.StartConnect(client_.To(server_.listening_at, active, pair));
  server_.StartAccept(server_.WaitRequest(), server_.Pair());
  EXPECT_TRUE(Result(second).ok()) << Result(second);
}

TEST_F(ConnectionTest, AConnectorAndAQueuePairConnectOnce) {
  const auto [active, passive] = MakeConnection();
  const QueuePairId other = client_.Pair();
  EXPECT_THAT(Result(client_.StartConnect(client_.To(server_.listening_at, active, other))),
              FailsAt(ErrorReason::CONNECTION_ACTIVE, "connector_id"));
  EXPECT_THAT(Result(client_.StartConnect(client_.To(server_.listening_at, client_.NewConnector(), client_pair_))),
              FailsAt(ErrorReason::CONNECTION_ACTIVE, "qp_id"));
  EXPECT_THAT(client_.session->Begin()->pairs().Connect(client_pair_, client_.Address(other)),
              FailsAt(ErrorReason::CONNECTION_ACTIVE, "qp_id"));
}

TEST_F(ConnectionTest, ADisconnectEndsWhenThePeerHasDisconnectedToo) {
  const auto [active, passive] = MakeConnection();
  const auto first = client_.StartDisconnect(active);
  const auto event = server_.WaitEvent<ConnectorDisconnected>();
  EXPECT_EQ(event.connector, passive);
  EXPECT_EQ(event.context, 8u);
  EXPECT_EQ(first->times(), 0);
  EXPECT_TRUE(Result(server_.StartDisconnect(passive)).ok());
  EXPECT_TRUE(Result(first).ok()) << Result(first);
  EXPECT_THAT(Result(client_.StartDisconnect(active)), FailsWith(ErrorReason::CONNECTOR_STATE));
}

TEST_F(ConnectionTest, APeerThatNeverDisconnectsEndsItWithTheTimeout) {
  const auto [active, passive] = MakeConnection();
  const auto disconnect = client_.StartDisconnect(active);
  EXPECT_EQ(server_.WaitEvent<ConnectorDisconnected>().connector, passive);
  world_.clock.Advance(world_.node.limits.connection_timeout);
  world_.alarms.RunDue();
  EXPECT_THAT(Result(disconnect), FailsWith(ErrorReason::CONNECTION_TIMED_OUT));
}

TEST_F(ConnectionTest, AnUndecidedRequestEndsThePeersConnectWithTheTimeoutOnly) {
  server_.Listen();
  const ConnectorId active = client_.NewConnector();
  const QueuePairId pair = client_.Pair();
  const auto connect = client_.StartConnect(client_.To(server_.listening_at, active, pair));
  const ConnectorId passive = server_.WaitRequest();
  world_.clock.Advance(world_.node.limits.connection_timeout);
  world_.alarms.RunDue();
  EXPECT_THAT(Result(connect), FailsWith(ErrorReason::CONNECTION_TIMED_OUT));
  // It hears of that on its own time; then the decision is too late.
  const auto second = client_.StartConnect(client_.To(server_.listening_at, active, pair));
  server_.WaitRequest();
  EXPECT_THAT(Result(server_.StartAccept(passive, server_.Pair())), FailsWith(ErrorReason::CONNECTION_ABORTED));
}

TEST_F(ConnectionTest, ACloseEndsThePendingRequestFirst) {
  server_.Listen();
  const ConnectorId active = client_.NewConnector();
  const auto connect = client_.StartConnect(client_.To(server_.listening_at, active, client_.Pair()));
  server_.WaitRequest();
  const auto close = client_.StartClose(active);
  EXPECT_TRUE(Result(close).ok());
  EXPECT_EQ(connect->times(), 1);
  EXPECT_THAT(Result(connect), FailsWith(ErrorReason::CONNECTION_CANCELLED));
}

TEST_F(ConnectionTest, ACloseOfOneSideIsAnEventOfTheOther) {
  const auto [active, passive] = MakeConnection();
  EXPECT_TRUE(Result(server_.StartClose(passive)).ok());
  const auto event = client_.WaitEvent<ConnectorDisconnected>();
  EXPECT_EQ(event.connector, active);
  EXPECT_EQ(event.context, 9u);
}

TEST_F(ConnectionTest, AQueuePairClosesBehindItsConnector) {
  const auto [active, passive] = MakeConnection();
  auto closed = std::make_shared<Awaited<absl::Status>>();
  const Done<> done = [closed](const absl::Status& status) { closed->Set(status); };
  FinishUnlessPending(client_.session->Begin()->pairs().Close(client_pair_, {}, done), done);
  EXPECT_EQ(closed->times(), 0);
  EXPECT_TRUE(Result(client_.StartClose(active)).ok());
  EXPECT_TRUE(Result(closed).ok());
}

TEST_F(ConnectionTest, AListenerClosesBehindTheConnectorsOfItsRequestsAndKeepsItsAddress) {
  const auto [active, passive] = MakeConnection();
  const auto close = server_.StartCloseListener(listener_);
  EXPECT_EQ(close->times(), 0);
  EXPECT_THAT(Result(client_.StartConnect(client_.To(server_.listening_at, client_.NewConnector(), client_.Pair()))),
              FailsWith(ErrorReason::CONNECTION_REFUSED));
  const ListenerId other = server_.NewListener();
  EXPECT_THAT(server_.TryListen(other, {.port = server_.listening_at.port}), FailsWith(ErrorReason::ADDRESS_IN_USE));
  EXPECT_TRUE(Result(server_.StartClose(passive)).ok());
  EXPECT_TRUE(Result(close).ok());
  EXPECT_TRUE(server_.TryListen(other, {.port = server_.listening_at.port}).ok());
}

TEST_F(ConnectionTest, APausedListenerRefusesAndKeepsItsAddress) {
  const ListenerId listener = server_.Listen();
  ASSERT_TRUE(server_.session->Begin()->listeners().SetPaused(listener, true).ok());
  const ConnectorId active = client_.NewConnector();
  const QueuePairId pair = client_.Pair();
  EXPECT_THAT(Result(client_.StartConnect(client_.To(server_.listening_at, active, pair))),
              FailsWith(ErrorReason::CONNECTION_REFUSED));
  ASSERT_TRUE(server_.session->Begin()->listeners().SetPaused(listener, false).ok());
  client_.StartConnect(client_.To(server_.listening_at, active, pair));
  server_.WaitRequest();
}

TEST_F(ConnectionTest, NothingIsLeftOfASessionThatEndsInTheMiddle) {
  MakeConnection();
  const auto pending = client_.StartConnect(client_.To(server_.listening_at, client_.NewConnector(), client_.Pair()));
  server_.WaitRequest();
  world_.End(client_.session);
  EXPECT_THAT(Result(pending), FailsWith(ErrorReason::SESSION_ENDING));
  server_.WaitEvent<ConnectorDisconnected>();
  world_.End(server_.session);
  EXPECT_TRUE(Eventually([&] { return world_.Held().empty(); })) << world_.Held();
}

}  // namespace
}  // namespace rnicd::core
