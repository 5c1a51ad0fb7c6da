// Group J of the edge cases: listeners.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/connections/ndk_connections.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kClose = 0x91;

// Connects from a session of its own to an address where nobody takes requests.
void ExpectNobodyListens(DaemonProcess& daemon, const v1::NetworkAddress& address, Where where = Where::current()) {
  TestParty caller(daemon);
  TestQueue queue(caller);
  const uint64_t connector = CreateConnector(caller);
  ExpectPends(Connect(caller, RequestTo(connector, queue, address)), where);
  ExpectFailed(caller.NextCompletion(where), v1::REQUEST_KIND_CONNECT, kConnectContext, ErrorReason::CONNECTION_REFUSED,
               where);
}

// Row 147. NDK: listeners and connectors are children of the adapter, which closes after them.
TEST_P(NdkConnections, Case147_AdapterCloseWaitsForListenersAndConnectors) {
  TestSession session(net_daemon());
  const uint64_t listener = CreateListener(session);
  const uint64_t connector = CreateConnector(session);
  AdapterClose close(session);
  v1::CreateConnectorRequest create;
  create.set_adapter_id(session.adapter_id());
  EXPECT_TRUE(Eventually([&] {
    const auto created = session.Call(&ConnectionStub::CreateConnector, create);
    if (created.ok()) {
      ExpectOk(CloseConnector(session, created.response.connector_id()));
    }
    return !created.ok();
  })) << "an adapter that is being closed still takes connectors";
  ExpectRefused(session.Call(&ConnectionStub::CreateConnector, create), ErrorReason::OBJECT_CLOSING, "adapter_id");
  ExpectOk(CloseListener(session, listener));
  close.MayEnd();
  ExpectOk(CloseConnector(session, connector));
  close.ExpectDone();
}

// Row 147: out of resources, at once.
TEST_P(NdkConnections, Case147_CreateOutOfResourcesIsRefusedAtOnce) {
  TestSession session(daemon_with({LimitsFlag("session_limits { listeners: 1 connectors: 1 } " + EveryConnection())}));
  CreateListener(session);
  CreateConnector(session);
  v1::CreateListenerRequest listener;
  listener.set_adapter_id(session.adapter_id());
  ExpectRefused(session.Call(&ConnectionStub::CreateListener, listener), ErrorReason::QUOTA_LISTENERS);
  v1::CreateConnectorRequest connector;
  connector.set_adapter_id(session.adapter_id());
  ExpectRefused(session.Call(&ConnectionStub::CreateConnector, connector), ErrorReason::QUOTA_CONNECTORS);
}

// Row 148. NDK: there is no backlog parameter.
TEST_P(NdkConnections, Case148_ListensAtTheAddressAndPortThatItIsGiven) {
  TestConnection connection(net_daemon());
  const v1::NetworkAddress address = FreeAddress(connection.passive);
  const auto listening = Listen(connection.passive, CreateListener(connection.passive), address);
  ExpectOk(listening);
  EXPECT_EQ(TextOf(listening.response.local()), TextOf(address));
  connection.listener.local = address;
  connection.Make();
}

// Row 149. NDK: port 0 is one of the dynamic ports, which GetLocalAddress tells.
TEST_P(NdkConnections, Case149_PortZeroIsADynamicPort) {
  TestSession session(net_daemon());
  const TestListener listener(session);
  EXPECT_GE(listener.local.port(), kFirstPort);
  v1::GetListenerLocalAddressRequest request;
  request.set_listener_id(listener.id);
  const auto told = session.Call(&ConnectionStub::GetListenerLocalAddress, request);
  ExpectOk(told);
  EXPECT_EQ(TextOf(told.response.local()), TextOf(listener.local));
}

// Row 149: with none left. The policy permits two.
TEST_P(NdkConnections, Case149_NoPortLeftIsRefused) {
  TestSession session(daemon_with({LimitsFlag(EveryConnection("first_port: 50000 last_port: 50001"))}));
  const TestListener first(session);
  const TestListener second(session);
  ExpectRefused(Listen(session, CreateListener(session)), ErrorReason::PORTS_EXHAUSTED, "local.port");
  ExpectOk(CloseListener(session, first.id));
  const TestListener third(session);
  EXPECT_EQ(third.local.port(), first.local.port());
}

// Row 150. NDK leaves the wildcard open, and user mode takes it as all addresses of the adapter. Here it is refused: a
// consumer must say where it listens, or leave that to the daemon.
TEST_P(NdkConnections, Case150_AddressThatIsNotTheAdaptersIsRefused) {
  TestSession session(net_daemon());
  const uint64_t listener = CreateListener(session);
  for (const char* const address : {"192.0.2.1", "2001:db8::1", "127.0.0.1", "0.0.0.0", "::"}) {
    ExpectRefused(Listen(session, listener, AddressOf(address, kFirstPort)), ErrorReason::ADDRESS_INVALID,
                  "local.address");
  }
  ExpectOk(Listen(session, listener));
}

// Row 151. NDK: STATUS_SHARING_VIOLATION, also by another opening of the adapter.
TEST_P(NdkConnections, Case151_TakenAddressIsRefused) {
  TestSession session(net_daemon());
  TestSession other(net_daemon());
  const TestListener listener(session);
  ExpectRefused(Listen(session, CreateListener(session), listener.local), ErrorReason::ADDRESS_IN_USE, "local");
  ExpectRefused(Listen(other, CreateListener(other), listener.local), ErrorReason::ADDRESS_IN_USE, "local");
}

// Row 152, where NDK is silent.
TEST_P(NdkConnections, Case152_SecondListenIsRefused) {
  TestSession session(net_daemon());
  const TestListener listener(session);
  ExpectRefused(Listen(session, listener.id), ErrorReason::LISTENER_STATE, "listener_id");
  // The port that it would have had is free.
  ExpectOk(CloseListener(session, listener.id));
  EXPECT_EQ(TextOf(TestListener(session, listener.local).local), TextOf(listener.local));
}

TEST_P(NdkConnections, Case152_NoLocalAddressBeforeListen) {
  TestSession session(net_daemon());
  v1::GetListenerLocalAddressRequest request;
  request.set_listener_id(CreateListener(session));
  ExpectRefused(session.Call(&ConnectionStub::GetListenerLocalAddress, request), ErrorReason::LISTENER_STATE,
                "listener_id");
  ExpectRefused(Pause(session, request.listener_id()), ErrorReason::LISTENER_STATE, "listener_id");
}

// Row 154. NDK: a request is indicated once, with a connector that the provider has made.
TEST_P(NdkConnections, Case154_RequestIsIndicatedOnce) {
  TestConnection connection(net_daemon());
  ExpectPends(Connect(connection.active, connection.request()));
  const v1::ConnectEvent event = connection.passive.NextRequest();
  EXPECT_EQ(event.listener_id(), connection.listener.id);
  EXPECT_EQ(event.listener_context(), kListenerContext);
  connection.passive_id = event.connector_id();
  connection.Answer();
  connection.Complete();
  EXPECT_THAT(connection.passive.EventsUntilEnd(), testing::IsEmpty());
}

// Row 154. NDK states no time limit for the decision. The one who asks has one (row 164), and its request is then gone.
TEST_P(NdkConnections, Case154_UndecidedRequestDoesNotTimeOut) {
  TestConnection connection(impatient_daemon());
  connection.Ask();
  ExpectFailed(connection.active.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext,
               ErrorReason::CONNECTION_TIMED_OUT);
  ExpectOk(Addresses(connection.passive, connection.passive_id));
  ExpectOk(CloseConnector(connection.passive, connection.passive_id));
}

// Row 155. NDK: while it is paused, requests are treated as if nobody listened. Its address stays taken, and connectors
// that were indicated stay.
TEST_P(NdkConnections, Case155_PausedListenerTakesNoRequests) {
  DaemonProcess& daemon = net_daemon();
  TestConnection connection(daemon);
  connection.Ask();
  ExpectOk(Pause(connection.passive, connection.listener.id));
  ExpectNobodyListens(daemon, connection.listener.local);
  ExpectRefused(Listen(connection.active, CreateListener(connection.active), connection.listener.local),
                ErrorReason::ADDRESS_IN_USE, "local");
  connection.Answer();
  connection.Complete();
  EXPECT_THAT(connection.passive.EventsUntilEnd(), testing::IsEmpty());
}

// Row 156. NDK: later requests are indicated again; those that were refused never are. To pause twice is harmless.
TEST_P(NdkConnections, Case156_ResumedListenerTakesLaterRequests) {
  DaemonProcess& daemon = net_daemon();
  TestConnection connection(daemon);
  ExpectOk(Pause(connection.passive, connection.listener.id));
  ExpectOk(Pause(connection.passive, connection.listener.id));
  ExpectNobodyListens(daemon, connection.listener.local);
  ExpectOk(Pause(connection.passive, connection.listener.id, false));
  ExpectOk(Pause(connection.passive, connection.listener.id, false));
  connection.Make();
  EXPECT_THAT(connection.passive.EventsUntilEnd(), testing::IsEmpty());
}

// Row 157. NDK: new requests are refused from the call on, and it completes when every connector that was accepted over
// it is closed.
TEST_P(NdkConnections, Case157_CloseWaitsForTheConnectorsOfTheListener) {
  DaemonProcess& daemon = net_daemon();
  TestConnection connection(daemon);
  connection.Make();
  ExpectPends(CloseListener(connection.passive, connection.listener.id, kClose));
  ExpectNobodyListens(daemon, connection.listener.local);
  ExpectRefused(Pause(connection.passive, connection.listener.id), ErrorReason::OBJECT_NOT_FOUND, "listener_id");
  ExpectNoEventSoFar(connection.passive, connection.passive.events());
  connection.active_queue.MustRun(WriteRequest({}, 0, 0));
  ExpectOk(CloseConnector(connection.passive, connection.passive_id));
  ExpectDone(connection.passive.NextCompletion(), v1::REQUEST_KIND_CLOSE_LISTENER, kClose, connection.listener.id);
}

// Row 158.
TEST_P(NdkConnections, Case158_NobodyListensAtAClosedListener) {
  DaemonProcess& daemon = net_daemon();
  TestSession session(daemon);
  const TestListener listener(session);
  ExpectOk(CloseListener(session, listener.id));
  ExpectNobodyListens(daemon, listener.local);
}

// Row 159. NDK: while such connectors live the address cannot be used, neither to listen nor as a source.
TEST_P(NdkConnections, Case159_AddressIsTakenUntilItsLastConnectorIsClosed) {
  TestConnection connection(net_daemon());
  connection.Make();
  TestSession& session = connection.passive;
  const v1::NetworkAddress address = connection.listener.local;
  ExpectPends(CloseListener(session, connection.listener.id, kClose));
  ExpectRefused(Listen(session, CreateListener(session), address), ErrorReason::ADDRESS_IN_USE, "local");
  ExpectRefused(CreateEndpoint(session, address), ErrorReason::ADDRESS_IN_USE, "local");
  TestQueue queue(session);
  const TestListener other(connection.active);
  v1::ConnectRequest request = RequestTo(CreateConnector(session), queue, other.local);
  *request.mutable_local() = address;
  ExpectRefused(Connect(session, request), ErrorReason::ADDRESS_IN_USE, "local");
  ExpectOk(CloseConnector(session, connection.passive_id));
  ExpectDone(connection.passive.NextCompletion(), v1::REQUEST_KIND_CLOSE_LISTENER, kClose, connection.listener.id);
  EXPECT_EQ(TextOf(TestListener(session, address).local), TextOf(address));
}

// Row 160, where NDK is silent. Here requests that are not decided yet can still be, and hold the close.
TEST_P(NdkConnections, Case160_UndecidedRequestOutlivesItsListener) {
  TestConnection connection(net_daemon());
  connection.Ask();
  ExpectPends(CloseListener(connection.passive, connection.listener.id, kClose));
  connection.Answer();
  connection.Complete();
  ExpectOk(CloseConnector(connection.passive, connection.passive_id));
  ExpectDone(connection.passive.NextCompletion(), v1::REQUEST_KIND_CLOSE_LISTENER, kClose, connection.listener.id);
}

}  // namespace
}  // namespace rnicd::test
