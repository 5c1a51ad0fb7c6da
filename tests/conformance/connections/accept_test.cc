// Group M of the edge cases: the passive side.
#include <string>

#include "tests/conformance/connections/ndk_connections.h"
#include "tests/conformance/queue_steps.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

// The active side's Connect has been refused.
void ExpectConnectRefused(TestConnection& connection, Where where = Where::current()) {
  ExpectFailed(connection.active.NextCompletion(where), v1::REQUEST_KIND_CONNECT, kConnectContext,
               ErrorReason::CONNECTION_REFUSED, where);
}

// Row 182. NDK: Accept ends when the connection is fully made.
TEST_P(NdkConnections, Case182_AcceptEndsWhenTheActiveSideHasCompleted) {
  TestConnection connection(net_daemon());
  connection.Ask();
  connection.Answer();
  ExpectNoEventSoFar(connection.passive, connection.passive.events());
  connection.passive_queue.ExpectPostRefused(SendRequest({}), ErrorReason::QP_NOT_CONNECTED, "");
  connection.Complete();
  connection.active_queue.MustPost({ReceiveRequest({}, 182)});
  connection.passive_queue.MustRun(SendRequest({}));
  ExpectCompletion(connection.active_queue.NextReceive(), NtStatus::kSuccess, 182);
}

// Row 183. NDK: STATUS_CONNECTION_ABORTED where the peer has given up; the connector has ended.
TEST_P(NdkConnections, Case183_PeerThatGivesUpAbortsAccept) {
  TestConnection connection(net_daemon());
  connection.Ask();
  connection.Answer();
  ExpectOk(CloseConnector(connection.active, connection.active_id));
  ExpectFailed(connection.passive.NextCompletion(), v1::REQUEST_KIND_ACCEPT, kAcceptContext,
               ErrorReason::CONNECTION_ABORTED);
  ExpectRefused(Accept(connection.passive, connection.answer()), ErrorReason::CONNECTION_ABORTED);
}

// Row 183: likewise where the request was withdrawn before.
TEST_P(NdkConnections, Case183_WithdrawnRequestIsNotAccepted) {
  TestConnection connection(net_daemon());
  connection.Ask();
  ExpectOk(CloseConnector(connection.active, connection.active_id));
  v1::AcceptRequest late = connection.answer();
  late.set_allow_pending(false);
  ExpectRefused(Accept(connection.passive, late), ErrorReason::CONNECTION_ABORTED);
}

// Row 183. NDK: STATUS_IO_TIMEOUT where the peer never completes.
TEST_P(NdkConnections, Case183_PeerThatNeverCompletesTimesOut) {
  TestConnection connection(impatient_daemon());
  connection.Ask();
  connection.Answer();
  ExpectFailed(connection.passive.NextCompletion(), v1::REQUEST_KIND_ACCEPT, kAcceptContext,
               ErrorReason::CONNECTION_TIMED_OUT);
  ExpectRefused(Accept(connection.passive, connection.answer()), ErrorReason::CONNECTION_TIMED_OUT);
}

// Row 184, where NDK is silent.
TEST_P(NdkConnections, Case184_RequestIsDecidedOnce) {
  TestConnection connection(net_daemon());
  connection.Ask();
  connection.Answer();
  TestQueue other(connection.passive);
  ExpectRefused(Accept(connection.passive, AnswerTo(connection.passive_id, other)), ErrorReason::CONNECTOR_STATE,
                "connector_id");
  ExpectRefused(Reject(connection.passive, connection.passive_id), ErrorReason::CONNECTOR_STATE, "connector_id");
}

TEST_P(NdkConnections, Case184_RejectedRequestIsNotAccepted) {
  TestConnection connection(net_daemon());
  connection.Ask();
  ExpectOk(Reject(connection.passive, connection.passive_id));
  ExpectRefused(Accept(connection.passive, connection.answer()), ErrorReason::CONNECTOR_STATE, "connector_id");
  ExpectRefused(Reject(connection.passive, connection.passive_id), ErrorReason::CONNECTOR_STATE, "connector_id");
}

TEST_P(NdkConnections, Case184_ConnectorOfTheActiveSideDoesNotAccept) {
  TestConnection connection(net_daemon());
  const v1::AcceptRequest accept = AnswerTo(connection.active_id, connection.active_queue);
  ExpectRefused(Accept(connection.active, accept), ErrorReason::CONNECTOR_STATE, "connector_id");
  ExpectRefused(Reject(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  connection.Ask();
  ExpectRefused(Accept(connection.active, accept), ErrorReason::CONNECTOR_STATE, "connector_id");
}

// Row 185. The request is still undecided.
TEST_P(NdkConnections, Case185_TooMuchPrivateDataLeavesTheRequestUndecided) {
  TestConnection connection(net_daemon());
  connection.Ask();
  v1::AcceptRequest answer = connection.answer();
  const std::string too_much(AdapterInfo(connection.passive).max_callee_data() + 1, 'x');
  answer.set_private_data(too_much);
  ExpectRefused(Accept(connection.passive, answer), ErrorReason::PRIVATE_DATA_TOO_LONG, "private_data");
  ExpectRefused(Reject(connection.passive, connection.passive_id, too_much), ErrorReason::PRIVATE_DATA_TOO_LONG,
                "private_data");
  connection.Answer();
  connection.Complete();
}

// Row 186. NDK: Reject ends inline; the peer's Connect ends STATUS_CONNECTION_REFUSED.
TEST_P(NdkConnections, Case186_RejectEndsThePeersConnect) {
  TestConnection connection(net_daemon());
  connection.Ask();
  ExpectOk(Reject(connection.passive, connection.passive_id, "no"));
  ExpectConnectRefused(connection);
}

TEST_P(NdkConnections, Case186_WithdrawnRequestIsNotRejected) {
  TestConnection connection(net_daemon());
  connection.Ask();
  ExpectOk(CloseConnector(connection.active, connection.active_id));
  // The daemon knows of it.
  EXPECT_TRUE(Eventually([&] { return !ConnectionData(connection.passive, connection.passive_id).ok(); }));
  ExpectRefused(Reject(connection.passive, connection.passive_id), ErrorReason::CONNECTION_ABORTED);
}

// Row 187, where NDK is silent: the close of an undecided connector rejects without data.
TEST_P(NdkConnections, Case187_CloseOfAnUndecidedConnectorRejects) {
  TestConnection connection(net_daemon());
  connection.Ask();
  ExpectOk(CloseConnector(connection.passive, connection.passive_id));
  ExpectConnectRefused(connection);
  ExpectRefused(ConnectionData(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
}

// Row 188. iWARP forbids the passive side to send first, so consumers wait for a message.
TEST_P(NdkConnections, Case188_PassiveSideSendsWhenItHasReceived) {
  TestConnection connection(net_daemon());
  connection.active_queue.MustPost({ReceiveRequest({}, 188)});
  connection.passive_queue.MustPost({ReceiveRequest({}, 189)});
  connection.Make();
  connection.active_queue.MustRun(SendRequest({}));
  ExpectCompletion(connection.passive_queue.NextReceive(), NtStatus::kSuccess, 189);
  connection.passive_queue.MustRun(SendRequest({}));
  ExpectCompletion(connection.active_queue.NextReceive(), NtStatus::kSuccess, 188);
}

}  // namespace
}  // namespace rnicd::test
