// Group K of the edge cases: the active side, until Connect has ended.
#include <future>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/connections/ndk_connections.h"
#include "tests/conformance/queue_steps.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kCloseContext = 0x92;

// Expects that Connect pends and ends in this way.
void ExpectConnectFails(TestConnection& connection, const v1::ConnectRequest& request, ErrorReason reason,
                        Where where = Where::current()) {
  ExpectPends(Connect(connection.active, request), where);
  ExpectFailed(connection.active.NextCompletion(where), v1::REQUEST_KIND_CONNECT, kConnectContext, reason, where);
}

v1::CreateSharedEndpointResponse MustCreateEndpoint(TestSession& session) {
  const auto created = CreateEndpoint(session);
  ExpectOk(created);
  return created.response;
}

// Row 161. NDK: Connect ends when the peer has accepted; requests of the initiator queue are refused until
// CompleteConnect has ended, while receives may be posted before Connect.
TEST_P(NdkConnections, Case161_QueuePairSendsOnlyWhenTheConnectionIsComplete) {
  TestConnection connection(net_daemon());
  connection.active_queue.MustPost({ReceiveRequest({}, 161)});
  connection.Ask();
  connection.active_queue.ExpectPostRefused(SendRequest({}), ErrorReason::QP_NOT_CONNECTED, "");
  connection.passive_queue.MustPost({ReceiveRequest({}, 162)});
  connection.Answer();
  connection.active_queue.ExpectPostRefused(SendRequest({}), ErrorReason::QP_NOT_CONNECTED, "");
  connection.Complete();
  connection.active_queue.MustRun(SendRequest({}));
  ExpectCompletion(connection.passive_queue.NextReceive(), NtStatus::kSuccess, 162);
  connection.passive_queue.MustRun(SendRequest({}));
  ExpectCompletion(connection.active_queue.NextReceive(), NtStatus::kSuccess, 161);
}

// Row 161: without allow_pending the call itself ends when the peer has accepted.
TEST_P(NdkConnections, Case161_ConnectWaitsInTheCallIfNotAllowedToPend) {
  TestConnection connection(net_daemon());
  v1::ConnectRequest request = connection.request();
  request.set_allow_pending(false);
  auto connected = std::async(std::launch::async, [&] { return Connect(connection.active, request); });
  connection.passive_id = connection.passive.NextRequest().connector_id();
  ExpectPends(Accept(connection.passive, connection.answer()));
  const auto answer = connected.get();
  ExpectOk(answer);
  EXPECT_EQ(answer.response.ntstatus(), kStatusSuccess);
  connection.Complete();
}

// Row 162. NDK: source port 0 is an ephemeral port.
TEST_P(NdkConnections, Case162_SourcePortZeroIsADynamicPort) {
  TestConnection connection(net_daemon());
  connection.Ask();
  connection.Answer();
  const auto addresses = Addresses(connection.active, connection.active_id);
  ExpectOk(addresses);
  EXPECT_GE(addresses.response.local().port(), kFirstPort);
  EXPECT_EQ(addresses.response.local().address(), FreeAddress(connection.active).address());
}

TEST_P(NdkConnections, Case162_SourceIsTheOneThatIsGiven) {
  TestConnection connection(net_daemon());
  const v1::NetworkAddress source = FreeAddress(connection.active);
  v1::ConnectRequest request = connection.request();
  *request.mutable_local() = source;
  ExpectPends(Connect(connection.active, request));
  connection.passive_id = connection.passive.NextRequest().connector_id();
  EXPECT_EQ(TextOf(Addresses(connection.passive, connection.passive_id).response.peer()), TextOf(source));
}

// Row 162: a source that is taken, also by a connection with the same destination, and one that is not the adapter's.
TEST_P(NdkConnections, Case162_SourceThatCannotBeUsedIsRefused) {
  TestConnection connection(net_daemon());
  const v1::NetworkAddress source = FreeAddress(connection.active);
  v1::ConnectRequest request = connection.request();
  *request.mutable_local() = source;
  ExpectPends(Connect(connection.active, request));
  TestQueue queue(connection.active);
  v1::ConnectRequest second = RequestTo(CreateConnector(connection.active), queue, connection.listener.local);
  *second.mutable_local() = source;
  ExpectRefused(Connect(connection.active, second), ErrorReason::ADDRESS_IN_USE, "local");
  *second.mutable_local() = connection.listener.local;
  ExpectRefused(Connect(connection.active, second), ErrorReason::ADDRESS_IN_USE, "local");
  *second.mutable_local() = AddressOf("192.0.2.1", kFirstPort);
  ExpectRefused(Connect(connection.active, second), ErrorReason::ADDRESS_INVALID, "local.address");
}

// Row 163. NDK: a shared endpoint is the source of connections to several destinations, but of one to each.
TEST_P(NdkConnections, Case163_EndpointIsSharedByConnectionsToDifferentPeers) {
  TestConnection connection(net_daemon());
  const v1::CreateSharedEndpointResponse endpoint = MustCreateEndpoint(connection.active);
  const TestListener other(connection.passive);
  std::set<std::string> sources;
  for (const v1::NetworkAddress& peer : {connection.listener.local, other.local}) {
    TestQueue queue(connection.active);
    v1::ConnectRequest request = RequestTo(CreateConnector(connection.active), queue, peer);
    request.set_shared_endpoint_id(endpoint.shared_endpoint_id());
    ExpectPends(Connect(connection.active, request));
    sources.insert(
        TextOf(Addresses(connection.passive, connection.passive.NextRequest().connector_id()).response.peer()));
  }
  EXPECT_EQ(sources, std::set<std::string>{TextOf(endpoint.local())});
  v1::ConnectRequest again = connection.request();
  again.set_shared_endpoint_id(endpoint.shared_endpoint_id());
  ExpectRefused(Connect(connection.active, again), ErrorReason::CONNECTION_EXISTS, "peer");
}

// Row 163. NDK: its close waits for its connectors, and holds the port until then.
TEST_P(NdkConnections, Case163_EndpointCloseWaitsForItsConnectors) {
  TestConnection connection(net_daemon());
  const v1::CreateSharedEndpointResponse endpoint = MustCreateEndpoint(connection.active);
  v1::ConnectRequest request = connection.request();
  request.set_shared_endpoint_id(endpoint.shared_endpoint_id());
  ExpectPends(Connect(connection.active, request));
  connection.passive_id = connection.passive.NextRequest().connector_id();
  connection.Answer();
  connection.Complete();
  ExpectPends(CloseEndpoint(connection.active, endpoint.shared_endpoint_id(), kCloseContext));
  ExpectNoEventSoFar(connection.active, connection.active.events());
  ExpectRefused(CreateEndpoint(connection.active, endpoint.local()), ErrorReason::ADDRESS_IN_USE, "local");
  ExpectOk(CloseConnector(connection.active, connection.active_id));
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_CLOSE_SHARED_ENDPOINT, kCloseContext,
             endpoint.shared_endpoint_id());
  ExpectOk(CreateEndpoint(connection.active, endpoint.local()));
}

// Row 164. NDK: STATUS_HOST_UNREACHABLE, STATUS_NETWORK_UNREACHABLE.
TEST_P(NdkConnections, Case164_NoSuchHostIsSaid) {
  TestConnection connection(net_daemon());
  v1::ConnectRequest request = connection.request();
  request.mutable_peer()->set_address(WithoutHost(connection.listener.local.address()));
  ExpectConnectFails(connection, request, ErrorReason::HOST_UNREACHABLE);
}

TEST_P(NdkConnections, Case164_NoRouteIsSaid) {
  TestConnection connection(net_daemon());
  v1::ConnectRequest request = connection.request();
  request.mutable_peer()->set_address("2001:db8::1");
  ExpectRefused(Connect(connection.active, request), ErrorReason::NETWORK_UNREACHABLE, "peer");
}

// Row 164. NDK: STATUS_CONNECTION_REFUSED where nobody listens, and where the peer rejects.
TEST_P(NdkConnections, Case164_NobodyListeningIsARefusal) {
  TestConnection connection(net_daemon());
  v1::ConnectRequest request = connection.request();
  *request.mutable_peer() = FreeAddress(connection.passive);
  ExpectConnectFails(connection, request, ErrorReason::CONNECTION_REFUSED);
}

// Row 164. NDK: STATUS_IO_TIMEOUT where no answer comes. Row 165: likewise it may be tried again.
TEST_P(NdkConnections, Case164_NoAnswerTimesOut) {
  TestConnection connection(impatient_daemon());
  ExpectConnectFails(connection, connection.request(), ErrorReason::CONNECTION_TIMED_OUT);
  v1::ConnectRequest nobody = connection.request();
  *nobody.mutable_peer() = FreeAddress(connection.passive);
  ExpectConnectFails(connection, nobody, ErrorReason::CONNECTION_REFUSED);
}

// Row 165. NDK: after one of these the connection may be tried again. Here with the same connector and queue pair.
TEST_P(NdkConnections, Case165_SameConnectorAndQueuePairMayTryAgain) {
  TestConnection connection(net_daemon());
  v1::ConnectRequest nobody = connection.request();
  *nobody.mutable_peer() = FreeAddress(connection.passive);
  ExpectConnectFails(connection, nobody, ErrorReason::CONNECTION_REFUSED);
  nobody.mutable_peer()->set_address(WithoutHost(connection.listener.local.address()));
  ExpectConnectFails(connection, nobody, ErrorReason::HOST_UNREACHABLE);
  connection.Ask();
  ExpectOk(Reject(connection.passive, connection.passive_id));
  ExpectFailed(connection.active.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext,
               ErrorReason::CONNECTION_REFUSED);
  connection.Make();
  connection.active_queue.MustRun(WriteRequest({}, 0, 0));
}

// Row 165: likewise the queue pair with another connector, or by ConnectQp.
TEST_P(NdkConnections, Case165_QueuePairIsFreeAgain) {
  TestConnection connection(net_daemon());
  v1::ConnectRequest nobody = connection.request();
  *nobody.mutable_peer() = FreeAddress(connection.passive);
  ExpectConnectFails(connection, nobody, ErrorReason::CONNECTION_REFUSED);
  ConnectPair(connection.active_queue, connection.passive_queue);
  connection.active_queue.MustRun(WriteRequest({}, 0, 0));
}

// Row 166. NDK is silent; user mode has STATUS_INVALID_BUFFER_SIZE.
TEST_P(NdkConnections, Case166_TooMuchPrivateDataIsRefused) {
  TestConnection connection(net_daemon());
  const uint32_t most = AdapterInfo(connection.active).max_caller_data();
  v1::ConnectRequest request = connection.request();
  request.set_private_data(std::string(most + 1, 'x'));
  ExpectRefused(Connect(connection.active, request), ErrorReason::PRIVATE_DATA_TOO_LONG, "private_data");
  request.set_private_data(std::string(most, 'x'));
  ExpectPends(Connect(connection.active, request));
  connection.passive_id = connection.passive.NextRequest().connector_id();
  const auto data = ConnectionData(connection.passive, connection.passive_id);
  ExpectOk(data);
  EXPECT_TRUE(data.response.private_data().starts_with(request.private_data()));
}

// Row 167. NDK: limits above the adapter's are lowered without a word.
TEST_P(NdkConnections, Case167_LimitsAboveTheAdaptersAreLowered) {
  TestConnection connection(net_daemon());
  const v1::NdkAdapterInfo info = AdapterInfo(connection.passive);
  v1::ConnectRequest request = connection.request();
  request.set_inbound_read_limit(UINT32_MAX);
  request.set_outbound_read_limit(UINT32_MAX);
  ExpectPends(Connect(connection.active, request));
  const auto data = ConnectionData(connection.passive, connection.passive.NextRequest().connector_id());
  ExpectOk(data);
  EXPECT_EQ(data.response.inbound_read_limit(), info.max_inbound_read_limit());
  EXPECT_EQ(data.response.outbound_read_limit(), info.max_outbound_read_limit());
}

// Row 167. NDK: 0 is legal, and then there are no reads that way.
TEST_P(NdkConnections, Case167_LimitZeroMeansNoReads) {
  TestConnection connection(net_daemon());
  RegisteredMemory active_page(connection.active, kPage, kMrSink | kMrRemoteRead);
  RegisteredMemory passive_page(connection.passive, kPage, kMrSink | kMrRemoteRead);
  v1::ConnectRequest request = connection.request();
  request.set_outbound_read_limit(0);
  ExpectPends(Connect(connection.active, request));
  connection.passive_id = connection.passive.NextRequest().connector_id();
  connection.Answer();
  connection.Complete();
  connection.active_queue.ExpectPostRefused(ReadRequest({active_page.Piece(0, 8)}, kBase, passive_page.remote_token()),
                                            ErrorReason::READS_NOT_AGREED, "read");
  connection.passive_queue.MustRun(ReadRequest({passive_page.Piece(0, 8)}, kBase, active_page.remote_token()));
}

// Row 168. NDK is silent; user mode has STATUS_CONNECTION_ACTIVE.
TEST_P(NdkConnections, Case168_ConnectorConnectsOnce) {
  TestConnection connection(net_daemon());
  connection.Ask();
  TestQueue other(connection.active);
  const v1::ConnectRequest again = RequestTo(connection.active_id, other, connection.listener.local);
  ExpectRefused(Connect(connection.active, again), ErrorReason::CONNECTION_ACTIVE, "connector_id");
  connection.Answer();
  ExpectRefused(Connect(connection.active, again), ErrorReason::CONNECTION_ACTIVE, "connector_id");
  connection.Complete();
  ExpectRefused(Connect(connection.active, again), ErrorReason::CONNECTION_ACTIVE, "connector_id");
}

TEST_P(NdkConnections, Case168_QueuePairHasOneConnection) {
  TestConnection connection(net_daemon());
  const v1::ConnectRequest again =
      RequestTo(CreateConnector(connection.active), connection.active_queue, connection.listener.local);
  connection.Ask();
  ExpectRefused(Connect(connection.active, again), ErrorReason::CONNECTION_ACTIVE, "qp_id");
  ExpectRefused(Connect(connection.active_queue, connection.passive_queue.Query().address()),
                ErrorReason::CONNECTION_ACTIVE, "qp_id");
  connection.Answer();
  connection.Complete();
  ExpectRefused(Connect(connection.active, again), ErrorReason::CONNECTION_ACTIVE, "qp_id");
}

TEST_P(NdkConnections, Case168_QueuePairThatConnectQpConnectedIsRefused) {
  TestConnection connection(net_daemon());
  ConnectPair(connection.active_queue, connection.passive_queue);
  ExpectRefused(Connect(connection.active, connection.request()), ErrorReason::CONNECTION_ACTIVE, "qp_id");
}

// Row 169, where NDK is silent: connector and queue pair are of the same adapter.
TEST_P(NdkConnections, Case169_QueuePairOfAnotherAdapterIsRefused) {
  TestConnection connection(net_daemon());
  v1::OpenAdapterRequest open;
  open.set_adapter_name(AdapterUnderTest());
  const auto opened = connection.active.Call(&AdapterStub::OpenAdapter, open);
  ExpectOk(opened);
  v1::CreateConnectorRequest create;
  create.set_adapter_id(opened.response.adapter_id());
  const auto created = connection.active.Call(&ConnectionStub::CreateConnector, create);
  ExpectOk(created);
  ExpectRefused(Connect(connection.active,
                        RequestTo(created.response.connector_id(), connection.active_queue, connection.listener.local)),
                ErrorReason::ADAPTER_MISMATCH, "qp_id");
}

// Row 170. NDK: the adapter's own address is a destination where the adapter has the flag LOOPBACK_CONNECTIONS.
TEST_P(NdkConnections, Case170_OwnAddressIsADestination) {
  TestConnection connection(net_daemon());
  connection.Make();
  const auto addresses = Addresses(connection.active, connection.active_id);
  ExpectOk(addresses);
  EXPECT_EQ(addresses.response.local().address(), addresses.response.peer().address());
}

TEST_P(NdkConnections, Case170_OwnAddressNeedsTheFlag) {
  constexpr uint32_t kAdapterLoopback = 0x10000;
  TestConnection connection(net_daemon(AdapterFlagsWithout(kAdapterLoopback)));
  ExpectRefused(Connect(connection.active, connection.request()), ErrorReason::ADDRESS_INVALID, "peer.address");
}

}  // namespace
}  // namespace rnicd::test
