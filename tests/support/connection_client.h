#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tests/support/calls/event_reader.h"
#include "tests/support/calls/expect.h"
#include "tests/support/queue_client.h"
#include "tests/support/test_session.h"

namespace rnicd::test {

// What these clients give to the daemon, to be returned in events.
inline constexpr uint64_t kListenerContext = 0x71;
inline constexpr uint64_t kDisconnectContext = 0x72;

// A session that makes connections, with its events.
class TestParty : public TestSession {
 public:
  explicit TestParty(DaemonProcess& daemon, const std::string& label = "party", const std::string& grant = {});
  explicit TestParty(const Sockets& sockets);

  // The next unread event of that kind; others stay unread. A test failure and an empty message on timeout.
  v1::ConnectEvent NextRequest(Where where = Where::current());
  v1::DisconnectEvent NextDisconnect(Where where = Where::current());
  v1::RequestCompleted NextCompletion(Where where = Where::current());
  EventReader& events() { return events_; }
  // Ends the session and returns its unread events, but the last one, which says the end.
  std::vector<v1::WatchEventsResponse> EventsUntilEnd();

 private:
  v1::WatchEventsResponse Next(v1::WatchEventsResponse::EventCase kind, Where where);

  EventReader events_;
  std::deque<v1::WatchEventsResponse> unread_;
};

// The completion is that of a request of this kind and context for this object, and it went well or has this reason.
void ExpectDone(const v1::RequestCompleted& completion, v1::RequestKind kind, uint64_t context, uint64_t object_id,
                Where where = Where::current());
void ExpectFailed(const v1::RequestCompleted& completion, v1::RequestKind kind, uint64_t context, ErrorReason reason,
                  Where where = Where::current());
template <typename Response>
void ExpectPends(const CallResult<Response>& result, Where where = Where::current()) {
  if (ExpectOk(result, where) && result.response.ntstatus() != kStatusPending) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << "the request does not pend";
  }
}

v1::NetworkAddress AddressOf(const std::string& ip, uint32_t port = 0);
// "198.18.0.1:50000", to be compared.
std::string TextOf(const v1::NetworkAddress& address);

uint64_t CreateListener(TestSession& session);
uint64_t CreateConnector(TestSession& session);
CallResult<v1::ListenResponse> Listen(TestSession& session, uint64_t listener_id, const v1::NetworkAddress& local = {},
                                      const std::string& name = {});
CallResult<v1::ControlConnectEventsResponse> Pause(TestSession& session, uint64_t listener_id, bool pause = true);
CallResult<v1::CreateSharedEndpointResponse> CreateEndpoint(TestSession& session, const v1::NetworkAddress& local = {});

// Requests that pend, with these contexts, and read limits of 1.
inline constexpr uint64_t kConnectContext = 0x81;
inline constexpr uint64_t kAcceptContext = 0x82;
v1::ConnectRequest RequestTo(uint64_t connector_id, const TestQueue& queue, const v1::NetworkAddress& peer);
v1::AcceptRequest AnswerTo(uint64_t connector_id, const TestQueue& queue);

CallResult<v1::ConnectResponse> Connect(TestSession& session, const v1::ConnectRequest& request);
CallResult<v1::AcceptResponse> Accept(TestSession& session, const v1::AcceptRequest& request);
CallResult<v1::RejectResponse> Reject(TestSession& session, uint64_t connector_id, const std::string& data = {});
CallResult<v1::GetConnectionDataResponse> ConnectionData(TestSession& session, uint64_t connector_id);
CallResult<v1::GetConnectorAddressesResponse> Addresses(TestSession& session, uint64_t connector_id);

// Each waits in the call, or pends where it has a context.
CallResult<v1::CompleteConnectResponse> CompleteConnect(TestSession& session, uint64_t connector_id,
                                                        uint64_t context = 0);
CallResult<v1::DisconnectResponse> Disconnect(TestSession& session, uint64_t connector_id, uint64_t context = 0);
CallResult<v1::CloseConnectorResponse> CloseConnector(TestSession& session, uint64_t connector_id,
                                                      uint64_t context = 0);
CallResult<v1::CloseListenerResponse> CloseListener(TestSession& session, uint64_t listener_id, uint64_t context = 0);
CallResult<v1::CloseSharedEndpointResponse> CloseEndpoint(TestSession& session, uint64_t endpoint_id,
                                                          uint64_t context = 0);

// A port of the session's adapter that is free.
v1::NetworkAddress FreeAddress(TestSession& session);

// A listener that listens.
struct TestListener {
  explicit TestListener(TestSession& session, const v1::NetworkAddress& local = {}, const std::string& name = {});
  uint64_t id = 0;
  v1::NetworkAddress local;
  std::string full_name;
};

// Both ends of a connection, each in a session of its own, made step by step.
struct TestConnection {
  // Makes queue pairs, a listener that listens, and an active connector.
  explicit TestConnection(DaemonProcess& daemon, const QueueOptions& options = {})
      : TestConnection(daemon, daemon, options) {}
  TestConnection(DaemonProcess& active_daemon, DaemonProcess& passive_daemon, const QueueOptions& options = {});

  // Connects, up to the request at the listener.
  void Ask(Where where = Where::current());
  // Accepts it, up to the end of Connect.
  void Answer(Where where = Where::current());
  // Completes the connection, up to the end of Accept.
  void Complete(Where where = Where::current());
  // All three.
  void Make(Where where = Where::current());
  // Both ends disconnect, the active one first.
  void End(Where where = Where::current());
  v1::ConnectRequest request() const { return RequestTo(active_id, active_queue, listener.local); }
  v1::AcceptRequest answer() const { return AnswerTo(passive_id, passive_queue); }

  TestParty active;
  TestParty passive;
  TestQueue active_queue;
  TestQueue passive_queue;
  TestListener listener;
  uint64_t active_id;
  // That of the last request.
  uint64_t passive_id = 0;
};

}  // namespace rnicd::test
