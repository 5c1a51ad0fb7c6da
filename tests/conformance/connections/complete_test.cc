// Group K of the edge cases, last part: from the end of Connect on; and group L: the data of a connection.
#include <algorithm>
#include <string>

#include "tests/conformance/connections/ndk_connections.h"
#include "tests/conformance/queue_steps.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kCompleteContext = 0x93;

// What a card may have added are zeros.
void ExpectData(TestSession& session, uint64_t connector_id, const std::string& sent, Where where = Where::current()) {
  const auto data = ConnectionData(session, connector_id);
  if (!ExpectOk(data, where)) {
    return;
  }
  const std::string& received = data.response.private_data();
  const bool padded =
      received.starts_with(sent) && std::all_of(received.begin() + static_cast<std::ptrdiff_t>(sent.size()),
                                                received.end(), [](char c) { return c == '\0'; });
  if (!padded) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "not the data that were sent: " << data.response.ShortDebugString();
  }
}

void ExpectLimits(TestSession& session, uint64_t connector_id, uint32_t inbound, uint32_t outbound,
                  Where where = Where::current()) {
  const auto data = ConnectionData(session, connector_id);
  if (ExpectOk(data, where) &&
      (data.response.inbound_read_limit() != inbound || data.response.outbound_read_limit() != outbound)) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "the limits are " << data.response.inbound_read_limit() << " and " << data.response.outbound_read_limit();
  }
}

// --- the end of the active side's work ---

// Row 171. NDK: then the connection is made. CompleteConnect takes what the DisconnectEvent returns.
TEST_P(NdkConnections, Case171_CompleteConnectMakesTheConnection) {
  TestConnection connection(net_daemon());
  connection.passive_queue.MustPost({ReceiveRequest({}, 171)});
  connection.Ask();
  connection.Answer();
  ExpectPends(CompleteConnect(connection.active, connection.active_id, kCompleteContext));
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_COMPLETE_CONNECT, kCompleteContext,
             connection.active_id);
  connection.active_queue.MustRun(SendRequest({}));
  ExpectCompletion(connection.passive_queue.NextReceive(), NtStatus::kSuccess, 171);
  ExpectDone(connection.passive.NextCompletion(), v1::REQUEST_KIND_ACCEPT, kAcceptContext, connection.passive_id);
  ExpectOk(CloseConnector(connection.passive, connection.passive_id));
  const v1::DisconnectEvent event = connection.active.NextDisconnect();
  EXPECT_EQ(event.connector_id(), connection.active_id);
  EXPECT_EQ(event.disconnect_context(), kDisconnectContext);
}

// Row 172. NDK: STATUS_CONNECTION_INVALID.
TEST_P(NdkConnections, Case172_CompleteConnectHasItsTimeOnce) {
  TestConnection connection(net_daemon());
  ExpectRefused(CompleteConnect(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  connection.Ask();
  ExpectRefused(CompleteConnect(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  connection.Answer();
  connection.Complete();
  ExpectRefused(CompleteConnect(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
}

// Row 172. NDK: STATUS_CONNECTION_ABORTED where the peer has given up, and the connector has ended.
TEST_P(NdkConnections, Case172_PeerThatGaveUpEndsTheConnector) {
  TestConnection connection(net_daemon());
  connection.Ask();
  connection.Answer();
  ExpectOk(CloseConnector(connection.passive, connection.passive_id));
  ExpectRefused(CompleteConnect(connection.active, connection.active_id), ErrorReason::CONNECTION_ABORTED);
  ExpectRefused(Connect(connection.active, connection.request()), ErrorReason::CONNECTION_ABORTED);
}

// Row 172. NDK: STATUS_IO_TIMEOUT where it comes too late. Here the peer's Accept ends so, in the same time, and what
// CompleteConnect meets is a peer that has given up.
TEST_P(NdkConnections, Case172_CompleteConnectThatComesTooLateFails) {
  TestConnection connection(impatient_daemon());
  connection.Ask();
  connection.Answer();
  ExpectFailed(connection.passive.NextCompletion(), v1::REQUEST_KIND_ACCEPT, kAcceptContext,
               ErrorReason::CONNECTION_TIMED_OUT);
  ExpectRefused(CompleteConnect(connection.active, connection.active_id), ErrorReason::CONNECTION_ABORTED);
}

// Row 173. NDK: the active side may reject the answer, and the passive side's Accept ends STATUS_CONNECTION_REFUSED or
// STATUS_CONNECTION_ABORTED.
TEST_P(NdkConnections, Case173_AnswerMayBeRejected) {
  TestConnection connection(net_daemon());
  connection.Ask();
  connection.Answer();
  ExpectOk(Reject(connection.active, connection.active_id, "no"));
  ExpectFailed(connection.passive.NextCompletion(), v1::REQUEST_KIND_ACCEPT, kAcceptContext,
               ErrorReason::CONNECTION_REFUSED);
  ExpectRefused(CompleteConnect(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
}

// Row 174, where NDK is silent: the request ends first, and then the close.
TEST_P(NdkConnections, Case174_CloseCancelsConnect) {
  TestConnection connection(net_daemon());
  connection.Ask();
  const auto closed = CloseConnector(connection.active, connection.active_id, kCompleteContext);
  ExpectOk(closed);
  ExpectFailed(connection.active.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext,
               ErrorReason::CONNECTION_CANCELLED);
  if (closed.response.ntstatus() == kStatusPending) {
    ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_CLOSE_CONNECTOR, kCompleteContext,
               connection.active_id);
  }
  // The peer's request has ended with it.
  v1::AcceptRequest late = connection.answer();
  late.set_allow_pending(false);
  ExpectRefused(Accept(connection.passive, late), ErrorReason::CONNECTION_ABORTED);
}

// --- connection data ---

// Row 175. NDK: the passive side has the data until Accept, the active side until CompleteConnect.
TEST_P(NdkConnections, Case175_DataAreThereUntilTheConnectionIsDecided) {
  TestConnection connection(net_daemon());
  v1::ConnectRequest request = connection.request();
  request.set_private_data("question");
  ExpectRefused(ConnectionData(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  ExpectPends(Connect(connection.active, request));
  connection.passive_id = connection.passive.NextRequest().connector_id();
  ExpectData(connection.passive, connection.passive_id, "question");
  ExpectRefused(ConnectionData(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  v1::AcceptRequest answer = connection.answer();
  answer.set_private_data("answer");
  ExpectPends(Accept(connection.passive, answer));
  ExpectRefused(ConnectionData(connection.passive, connection.passive_id), ErrorReason::CONNECTOR_STATE,
                "connector_id");
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext, connection.active_id);
  ExpectData(connection.active, connection.active_id, "answer");
  connection.Complete();
  ExpectRefused(ConnectionData(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
}

// Row 176. NDK: what a rejection says can be read.
TEST_P(NdkConnections, Case176_DataOfARejectionCanBeRead) {
  TestConnection connection(net_daemon());
  connection.Ask();
  ExpectOk(Reject(connection.passive, connection.passive_id, "full"));
  ExpectFailed(connection.active.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext,
               ErrorReason::CONNECTION_REFUSED);
  ExpectData(connection.active, connection.active_id, "full");
}

// Row 177. NDK: a consumer asks for the size first, and then for the data. The wire has the whole answer and no buffer
// of the caller, whose NULL or length could be wrong; what stays is that asking takes nothing away.
TEST_P(NdkConnections, Case177_DataCanBeAskedForAgain) {
  TestConnection connection(net_daemon());
  v1::ConnectRequest request = connection.request();
  request.set_private_data("again");
  ExpectPends(Connect(connection.active, request));
  connection.passive_id = connection.passive.NextRequest().connector_id();
  ExpectData(connection.passive, connection.passive_id, "again");
  ExpectData(connection.passive, connection.passive_id, "again");
}

// Row 179. NDK: the size may be larger than what the peer sent: RoCE pads, also where nothing was sent.
TEST_P(NdkConnections, Case179_DataMayBePaddedWithZeros) {
  TestConnection connection(net_daemon());
  const v1::NdkAdapterInfo info = AdapterInfo(connection.active);
  v1::ConnectRequest request = connection.request();
  request.set_private_data(std::string(info.max_caller_data() / 2, 'c'));
  ExpectPends(Connect(connection.active, request));
  connection.passive_id = connection.passive.NextRequest().connector_id();
  ExpectData(connection.passive, connection.passive_id, request.private_data());
  v1::AcceptRequest answer = connection.answer();
  answer.set_private_data(std::string(info.max_callee_data(), 'a'));
  ExpectPends(Accept(connection.passive, answer));
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext, connection.active_id);
  ExpectData(connection.active, connection.active_id, answer.private_data());
}

TEST_P(NdkConnections, Case179_NoDataAreZeros) {
  TestConnection connection(net_daemon());
  connection.Ask();
  ExpectData(connection.passive, connection.passive_id, "");
  connection.Answer();
  ExpectData(connection.active, connection.active_id, "");
}

// Row 180. NDK: the effective limits are the minima; before Accept the passive side sees the offer.
TEST_P(NdkConnections, Case180_EffectiveLimitsAreWhatBothSidesAllow) {
  TestConnection connection(net_daemon());
  v1::ConnectRequest request = connection.request();
  request.set_inbound_read_limit(3);
  request.set_outbound_read_limit(5);
  ExpectPends(Connect(connection.active, request));
  connection.passive_id = connection.passive.NextRequest().connector_id();
  ExpectLimits(connection.passive, connection.passive_id, 5, 3);
  v1::AcceptRequest answer = connection.answer();
  answer.set_inbound_read_limit(4);
  answer.set_outbound_read_limit(7);
  ExpectPends(Accept(connection.passive, answer));
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext, connection.active_id);
  ExpectLimits(connection.active, connection.active_id, 3, 4);
}

// Row 181. NDK: both addresses are known from the ConnectEvent, or from the success of Connect. On the wire they come
// whole: no buffer of the caller could be short.
TEST_P(NdkConnections, Case181_AddressesAreKnownToBothSides) {
  TestConnection connection(net_daemon());
  ExpectRefused(Addresses(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  connection.Ask();
  ExpectRefused(Addresses(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  const auto passive = Addresses(connection.passive, connection.passive_id);
  ExpectOk(passive);
  EXPECT_EQ(TextOf(passive.response.local()), TextOf(connection.listener.local));
  connection.Answer();
  const auto active = Addresses(connection.active, connection.active_id);
  ExpectOk(active);
  EXPECT_EQ(TextOf(active.response.peer()), TextOf(connection.listener.local));
  EXPECT_EQ(TextOf(active.response.local()), TextOf(passive.response.peer()));
  connection.Complete();
  ExpectOk(Addresses(connection.active, connection.active_id));
}

}  // namespace
}  // namespace rnicd::test
