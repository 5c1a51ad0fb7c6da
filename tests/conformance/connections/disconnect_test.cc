// Group N of the edge cases: how a connection ends.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/connections/ndk_connections.h"
#include "tests/conformance/queue_steps.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kFirst = 0xa1;
constexpr uint64_t kSecond = 0xa2;

void ExpectDisconnectEvent(TestParty& party, uint64_t connector_id, Where where = Where::current()) {
  const v1::DisconnectEvent event = party.NextDisconnect(where);
  EXPECT_EQ(event.connector_id(), connector_id);
  EXPECT_EQ(event.disconnect_context(), kDisconnectContext);
}

bool AnyDisconnectIn(const std::vector<v1::WatchEventsResponse>& events) {
  return std::ranges::any_of(events, [](const v1::WatchEventsResponse& event) { return event.has_disconnect_event(); });
}

// Row 189. NDK: Disconnect ends when the peer has disconnected too; then all requests are flushed.
TEST_P(NdkConnections, Case189_DisconnectEndsWhenThePeerHasDisconnectedToo) {
  TestConnection connection(net_daemon());
  connection.Make();
  connection.active_queue.MustPost({ReceiveRequest({}, 11)});
  connection.passive_queue.MustPost({ReceiveRequest({}, 12)});
  ExpectPends(Disconnect(connection.active, connection.active_id, kFirst));
  ExpectDisconnectEvent(connection.passive, connection.passive_id);
  ExpectNoEventSoFar(connection.active, connection.active.events());
  const auto second = Disconnect(connection.passive, connection.passive_id);
  ExpectOk(second);
  EXPECT_EQ(second.response.ntstatus(), kStatusSuccess);
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_DISCONNECT, kFirst, connection.active_id);
  ExpectCompletion(connection.active_queue.NextReceive(), NtStatus::kCancelled, 11);
  ExpectCompletion(connection.passive_queue.NextReceive(), NtStatus::kCancelled, 12);
}

// Row 189: and when the transfers of the queue pair are over, those of silent requests included.
TEST_P(NdkConnections, Case189_DisconnectWaitsForTransfers) {
  std::vector<std::string> flags = HoldableReadsFlags();
  TestConnection connection(net_daemon(flags));
  RegisteredMemory sink(connection.active, kPage, kMrSink);
  RegisteredMemory source(connection.passive, kPage, kMrRemoteRead);
  sink.memory.SetText(0, "stale");
  source.memory.SetText(0, "fresh");
  connection.Make();
  HeldReads held;
  connection.active_queue.MustPost({ReadRequest({sink.Piece(0, 5)}, kBase, source.remote_token(), kSilent, 1)});
  ExpectPends(Disconnect(connection.active, connection.active_id, kFirst));
  held.LetGo();
  ExpectDisconnectEvent(connection.passive, connection.passive_id);
  ExpectOk(Disconnect(connection.passive, connection.passive_id));
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_DISCONNECT, kFirst, connection.active_id);
  EXPECT_EQ(sink.memory.Text(0, 5), "fresh");
}

// Row 190. NDK: STATUS_IO_TIMEOUT; the connection has ended all the same.
TEST_P(NdkConnections, Case190_PeerThatNeverDisconnectsTimesOut) {
  TestConnection connection(impatient_daemon());
  connection.Make();
  ExpectPends(Disconnect(connection.active, connection.active_id, kFirst));
  ExpectFailed(connection.active.NextCompletion(), v1::REQUEST_KIND_DISCONNECT, kFirst,
               ErrorReason::CONNECTION_TIMED_OUT);
  ExpectInError(connection.active_queue);
  ExpectRefused(Disconnect(connection.active, connection.active_id), ErrorReason::CONNECTION_TIMED_OUT);
  ExpectDisconnectEvent(connection.passive, connection.passive_id);
  ExpectOk(Disconnect(connection.passive, connection.passive_id));
}

// Row 191. NDK: the indication comes once, when the peer disconnects or the connection breaks, and not for one's own
// disconnect or close.
TEST_P(NdkConnections, Case191_DisconnectIsIndicatedOnceAndToThePeerOnly) {
  TestConnection connection(net_daemon());
  connection.Make();
  ExpectPends(Disconnect(connection.active, connection.active_id, kFirst));
  ExpectDisconnectEvent(connection.passive, connection.passive_id);
  ExpectOk(Disconnect(connection.passive, connection.passive_id));
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_DISCONNECT, kFirst, connection.active_id);
  ExpectOk(CloseConnector(connection.active, connection.active_id));
  ExpectOk(CloseConnector(connection.passive, connection.passive_id));
  EXPECT_FALSE(AnyDisconnectIn(connection.active.EventsUntilEnd()));
  EXPECT_FALSE(AnyDisconnectIn(connection.passive.EventsUntilEnd()));
}

// Row 191: a connection breaks when its peer's session ends, or the peer's queue pair fails.
TEST_P(NdkConnections, Case191_EndOfThePeersSessionIsIndicated) {
  TestConnection connection(net_daemon());
  connection.Make();
  ExpectOk(connection.passive.CloseSession());
  ExpectDisconnectEvent(connection.active, connection.active_id);
  EXPECT_FALSE(AnyDisconnectIn(connection.active.EventsUntilEnd()));
}

TEST_P(NdkConnections, Case191_BrokenConnectionIsIndicated) {
  TestConnection connection(net_daemon());
  connection.Make();
  ExpectOk(Flush(connection.passive_queue));
  // The peer's queue pair has failed, which the next request finds where the card has not said so.
  if (!connection.active_queue.Post({SendRequest({})}).response.has_failure()) {
    EXPECT_NE(connection.active_queue.NextInitiator().result().ntstatus(), kStatusSuccess);
  }
  ExpectDisconnectEvent(connection.active, connection.active_id);
}

// Row 192. NDK: the indication flushes nothing.
TEST_P(NdkConnections, Case192_IndicationFlushesNothing) {
  TestConnection connection(net_daemon());
  connection.Make();
  connection.passive_queue.MustPost({ReceiveRequest({}, 1), ReceiveRequest({}, 2)});
  ExpectPends(Disconnect(connection.active, connection.active_id, kFirst));
  ExpectDisconnectEvent(connection.passive, connection.passive_id);
  EXPECT_TRUE(connection.passive_queue.DrainReceive().empty());
  ExpectOk(Flush(connection.passive_queue));
  ExpectCompletion(connection.passive_queue.NextReceive(), NtStatus::kCancelled, 1);
  ExpectCompletion(connection.passive_queue.NextReceive(), NtStatus::kCancelled, 2);
}

// Row 193. NDK: both succeed; the indication may come or not.
TEST_P(NdkConnections, Case193_BothSidesDisconnectAtOnce) {
  TestConnection connection(net_daemon());
  connection.Make();
  ExpectPends(Disconnect(connection.active, connection.active_id, kFirst));
  ExpectPends(Disconnect(connection.passive, connection.passive_id, kSecond));
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_DISCONNECT, kFirst, connection.active_id);
  ExpectDone(connection.passive.NextCompletion(), v1::REQUEST_KIND_DISCONNECT, kSecond, connection.passive_id);
}

// Row 194. NDK: with initiator requests outstanding a disconnect need not be graceful. Here they are cancelled.
TEST_P(NdkConnections, Case194_OutstandingRequestsAreCancelled) {
  TestConnection connection(net_daemon());
  connection.Make();
  connection.active_queue.MustPost({SendRequest({}, 0, 1), SendRequest({}, kSilent, 2)});
  EXPECT_TRUE(connection.active_queue.DrainInitiator().empty());
  connection.End();
  ExpectCompletion(connection.active_queue.NextInitiator(), NtStatus::kCancelled, 1);
  ExpectCompletion(connection.active_queue.NextInitiator(), NtStatus::kCancelled, 2);
}

// Row 195, where NDK is silent.
TEST_P(NdkConnections, Case195_DisconnectHasItsTimeOnce) {
  TestConnection connection(net_daemon());
  ExpectRefused(Disconnect(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  connection.Ask();
  ExpectRefused(Disconnect(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  ExpectRefused(Disconnect(connection.passive, connection.passive_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  connection.Answer();
  connection.Complete();
  ExpectPends(Disconnect(connection.active, connection.active_id, kFirst));
  ExpectRefused(Disconnect(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  ExpectOk(Disconnect(connection.passive, connection.passive_id));
  ExpectRefused(Disconnect(connection.passive, connection.passive_id), ErrorReason::CONNECTOR_STATE, "connector_id");
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_DISCONNECT, kFirst, connection.active_id);
  ExpectRefused(Disconnect(connection.active, connection.active_id), ErrorReason::CONNECTOR_STATE, "connector_id");
}

// Row 196. NDK: neither is of use again.
TEST_P(NdkConnections, Case196_DisconnectedConnectorAndQueuePairAreNotReused) {
  TestConnection connection(net_daemon());
  connection.Make();
  connection.End();
  TestQueue other(connection.active);
  ExpectRefused(Connect(connection.active, RequestTo(connection.active_id, other, connection.listener.local)),
                ErrorReason::CONNECTOR_STATE, "connector_id");
  ExpectRefused(Connect(connection.active, RequestTo(CreateConnector(connection.active), connection.active_queue,
                                                     connection.listener.local)),
                ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
}

// Row 197. NDK: the close of a connected connector is abortive, and the peer has its indication.
TEST_P(NdkConnections, Case197_CloseEndsTheConnectionAtOnce) {
  TestConnection connection(net_daemon());
  connection.Make();
  const auto closed = CloseConnector(connection.active, connection.active_id);
  ExpectOk(closed);
  EXPECT_EQ(closed.response.ntstatus(), kStatusSuccess);
  ExpectDisconnectEvent(connection.passive, connection.passive_id);
  ExpectRefused(Disconnect(connection.active, connection.active_id), ErrorReason::OBJECT_NOT_FOUND, "connector_id");
  ExpectOk(Disconnect(connection.passive, connection.passive_id));
}

// Row 198. NDK: a queue pair closes after its connector.
TEST_P(NdkConnections, Case198_QueuePairCloseWaitsForItsConnector) {
  TestConnection connection(net_daemon());
  connection.Make();
  ExpectPends(CloseQp(connection.active, connection.active_queue.qp_id(), true, kFirst));
  ExpectNoEventSoFar(connection.active, connection.active.events());
  ExpectOk(CloseConnector(connection.active, connection.active_id));
  ExpectDone(connection.active.NextCompletion(), v1::REQUEST_KIND_CLOSE_QP, kFirst, connection.active_queue.qp_id());
}

// Row 199, which user mode's tests have: after a flush, receives of the side whose peer is gone end STATUS_CANCELLED.
TEST_P(NdkConnections, Case199_ReceivesOfALostConnectionAreCancelled) {
  TestConnection connection(net_daemon());
  connection.Make();
  connection.passive_queue.MustPost({ReceiveRequest({}, 199)});
  ExpectOk(CloseConnector(connection.active, connection.active_id));
  ExpectDisconnectEvent(connection.passive, connection.passive_id);
  ExpectOk(Disconnect(connection.passive, connection.passive_id));
  ExpectCompletion(connection.passive_queue.NextReceive(), NtStatus::kCancelled, 199);
}

}  // namespace
}  // namespace rnicd::test
