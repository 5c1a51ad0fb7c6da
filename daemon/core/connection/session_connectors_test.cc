#include "daemon/core/connection/session_connectors.h"

#include "daemon/core/connection/connection_fixture_test.h"

namespace rnicd::core {
namespace {

TEST_F(ConnectionTest, ANameIsFoundByTheSameTenant) {
  server_.Listen("array");
  ConnectArguments arguments{.connector = client_.NewConnector(), .queue_pair = client_.Pair(), .peer_name = "array"};
  client_.StartConnect(arguments);
  server_.WaitRequest();
  arguments.connector = client_.NewConnector();
  arguments.peer_name = "other";
  EXPECT_THAT(Result(client_.StartConnect(arguments)), FailsAt(ErrorReason::NAME_NOT_FOUND, "peer_name"));
}

TEST_F(ConnectionTest, ANameIsOneListenersUntilThatIsClosed) {
  const ListenerId first = server_.Listen("array");
  const ListenerId second = server_.NewListener();
  EXPECT_THAT(server_.TryListen(second, {}, "array"), FailsAt(ErrorReason::NAME_TAKEN, "name"));
  EXPECT_TRUE(Result(server_.StartCloseListener(first)).ok());
  const auto at = server_.session->Begin()->listeners().Listen(second, {}, "array");
  ASSERT_TRUE(at.ok()) << at.status();
  EXPECT_EQ(at->full_name, "uid/uid=1000/array");
}

TEST_F(ConnectionTest, NamesAreShortPrintableAndWithoutSlash) {
  const ListenerId listener = server_.NewListener();
  for (const std::string& name : {std::string(64, 'x'), std::string("a/b"), std::string("a b"), std::string("\xff")}) {
    EXPECT_THAT(server_.TryListen(listener, {}, name), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "name"));
  }
}

TEST_F(ConnectionTest, AddressesAreThoseOfTheAdapter) {
  const ListenerId listener = server_.NewListener();
  for (const char* const address : {"10.0.0.1", "0.0.0.0", "::"}) {
    EXPECT_THAT(server_.TryListen(listener, {.ip = IpAddress::FromText(address)}),
                FailsAt(ErrorReason::ADDRESS_INVALID, "local.address"));
  }
  EXPECT_THAT(server_.session->Begin()->listeners().LocalAddressOf(listener).status(),
              FailsWith(ErrorReason::LISTENER_STATE));
}

TEST_F(ConnectionTest, AnotherTenantIsBehindTheWall) {
  ConnectionOwner stranger(world_, 3, 2000);
  server_.Listen("array");
  const QueuePairId pair = stranger.Pair();
  ConnectArguments arguments = stranger.To(server_.listening_at, stranger.NewConnector(), pair);
  EXPECT_THAT(Result(stranger.StartConnect(arguments)), FailsAt(ErrorReason::ADDRESS_NOT_PERMITTED, "peer"));
  arguments.peer = {};
  arguments.peer_name = "uid/uid=1000/array";
  EXPECT_THAT(Result(stranger.StartConnect(arguments)), FailsAt(ErrorReason::ADDRESS_NOT_PERMITTED, "peer_name"));
  EXPECT_THAT(stranger.session->Begin()->pairs().Connect(pair, server_.Address(server_.Pair())),
              FailsAt(ErrorReason::ADDRESS_NOT_PERMITTED, "peer_address"));
}

TEST_F(ConnectionTest, APortThatThePolicyDoesNotNameIsRefused) {
  const ListenerId listener = server_.NewListener();
  EXPECT_THAT(server_.TryListen(listener, {.port = 445}), FailsAt(ErrorReason::ADDRESS_NOT_PERMITTED, "local"));
}

TEST_F(ConnectionTest, ASharedEndpointHasOneConnectionToEachPeer) {
  server_.Listen();
  const auto endpoint = client_.session->Begin()->endpoints().Create(client_.adapter, {});
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  ConnectArguments first = client_.To(server_.listening_at, client_.NewConnector(), client_.Pair());
  first.endpoint = endpoint->id;
  client_.StartConnect(first);
  const ConnectorId passive = server_.WaitRequest();
  const auto addresses = server_.session->Begin()->connectors().Addresses(passive);
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_EQ(addresses->peer, endpoint->local);
  ConnectArguments second = client_.To(server_.listening_at, client_.NewConnector(), client_.Pair());
  second.endpoint = endpoint->id;
  EXPECT_THAT(Result(client_.StartConnect(second)), FailsAt(ErrorReason::CONNECTION_EXISTS, "peer"));
  server_.Listen();
  second.peer = server_.listening_at;
  client_.StartConnect(second);
  server_.WaitRequest();
}

// Both may talk; the server's policy does not let the client in.
class OneWayWall : public ConnectionTest {
 protected:
  OneWayWall() : ConnectionTest(Rules()) {}
  static Policy Rules() {
    Policy policy = OneTenantForEachUid(Limits{});
    policy.tenants.front().limits.connections.connect = {{.prefix = *IpPrefix::FromText("::/0")}};
    return policy;
  }
};

TEST_F(OneWayWall, ARequestThatIsNotPermittedNeverReachesTheWorkload) {
  ConnectionOwner stranger(world_, 3, 2000);
  const ListenerId listener = server_.Listen();
  EXPECT_THAT(
      Result(stranger.StartConnect(stranger.To(server_.listening_at, stranger.NewConnector(), stranger.Pair()))),
      FailsWith(ErrorReason::CONNECTION_REFUSED));
  EXPECT_TRUE(server_.HasNoEvent());
  const auto views = server_.session->ViewListeners();
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views.front().listener, listener);
  EXPECT_EQ(views.front().refused, 1u);
  const auto decisions = world_.observer.counts().decisions;
  const auto refused = std::ranges::find_if(
      decisions, [](const RecordedDecision& decision) { return decision.what == "connection.request"; });
  ASSERT_NE(refused, decisions.end());
  EXPECT_EQ(refused->refused, ErrorReason::ADDRESS_NOT_PERMITTED);
  EXPECT_THAT(refused->object, ::testing::HasSubstr("local=" + server_.listening_at.ToText() + " peer=198.18.0.1:"));
}

class FewConnectors : public ConnectionTest {
 protected:
  FewConnectors() : ConnectionTest(OneTenantForEachUid(Limits{}), Four()) {}
  static Limits Four() {
    Limits limits;
    limits[Resource::kConnectors] = 4;
    return limits;
  }
};

TEST_F(FewConnectors, AFloodOfRequestsStopsAtTheQuota) {
  server_.Listen();
  ConnectionOwner third(world_, 3);
  for (ConnectionOwner* const owner : {&client_, &client_, &third, &third}) {
    owner->StartConnect(owner->To(server_.listening_at, owner->NewConnector(), owner->Pair()));
    server_.WaitRequest();
  }
  EXPECT_THAT(Result(client_.StartConnect(client_.To(server_.listening_at, client_.NewConnector(), client_.Pair()))),
              FailsWith(ErrorReason::CONNECTION_REFUSED));
  EXPECT_EQ(server_.session->ViewListeners().front().refused, 1u);
}

}  // namespace
}  // namespace rnicd::core
