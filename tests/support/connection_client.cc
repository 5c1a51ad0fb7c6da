#include "tests/support/connection_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace rnicd::test {
namespace {

constexpr uint64_t kEndContext = 0x83;

void Fail(Where where, const std::string& what) {
  ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << what;
}

template <typename Request>
Request PendingRequest(uint64_t context) {
  Request request;
  request.set_allow_pending(context != 0);
  request.set_request_context(context);
  return request;
}

template <typename Request>
Request AboutConnector(uint64_t connector_id) {
  Request request;
  request.set_connector_id(connector_id);
  return request;
}

}  // namespace

TestParty::TestParty(DaemonProcess& daemon, const std::string& label, const std::string& grant)
    : TestSession(daemon, label, grant), events_(*this) {}

TestParty::TestParty(const Sockets& sockets) : TestSession(sockets, "party"), events_(*this) {}

v1::WatchEventsResponse TestParty::Next(v1::WatchEventsResponse::EventCase kind, Where where) {
  const auto has_kind = [kind](const v1::WatchEventsResponse& event) { return event.event_case() == kind; };
  auto found = std::ranges::find_if(unread_, has_kind);
  while (found == unread_.end()) {
    const std::optional<v1::WatchEventsResponse> event = events_.Next();
    if (!event.has_value()) {
      std::string others;
      for (const v1::WatchEventsResponse& each : unread_) {
        others += each.ShortDebugString() + "; ";
      }
      Fail(where, "no such event; unread: " + others);
      return {};
    }
    unread_.push_back(*event);
    found = std::ranges::find_if(unread_, has_kind);
  }
  v1::WatchEventsResponse event = *found;
  unread_.erase(found);
  return event;
}

v1::ConnectEvent TestParty::NextRequest(Where where) {
  return Next(v1::WatchEventsResponse::kConnectEvent, where).connect_event();
}

v1::DisconnectEvent TestParty::NextDisconnect(Where where) {
  return Next(v1::WatchEventsResponse::kDisconnectEvent, where).disconnect_event();
}

v1::RequestCompleted TestParty::NextCompletion(Where where) {
  return Next(v1::WatchEventsResponse::kRequestCompleted, where).request_completed();
}

std::vector<v1::WatchEventsResponse> TestParty::EventsUntilEnd() {
  ExpectOk(CloseSession());
  std::vector<v1::WatchEventsResponse> events(unread_.begin(), unread_.end());
  unread_.clear();
  std::ranges::copy(events_.RestUntilEnd(), std::back_inserter(events));
  EXPECT_TRUE(!events.empty() && events.back().has_session_ending());
  if (!events.empty()) {
    events.pop_back();
  }
  return events;
}

void ExpectDone(const v1::RequestCompleted& completion, v1::RequestKind kind, uint64_t context, uint64_t object_id,
                Where where) {
  if (completion.kind() != kind || completion.request_context() != context || completion.object_id() != object_id ||
      completion.ntstatus() != kStatusSuccess || completion.has_error()) {
    Fail(where, "expected the success of " + v1::RequestKind_Name(kind) + " " + std::to_string(context) +
                    "; got: " + completion.ShortDebugString());
  }
}

void ExpectFailed(const v1::RequestCompleted& completion, v1::RequestKind kind, uint64_t context, ErrorReason reason,
                  Where where) {
  if (completion.kind() != kind || completion.request_context() != context ||
      completion.ntstatus() != static_cast<uint32_t>(RowOf(reason).ntstatus)) {
    Fail(where, "expected the failure of " + v1::RequestKind_Name(kind) + " " + std::to_string(context) +
                    "; got: " + completion.ShortDebugString());
    return;
  }
  ExpectRefused(completion.error(), reason, completion.error().field(), where);
}

v1::NetworkAddress AddressOf(const std::string& ip, uint32_t port) {
  v1::NetworkAddress address;
  address.set_address(ip);
  address.set_port(port);
  return address;
}

std::string TextOf(const v1::NetworkAddress& address) {
  return address.address() + ":" + std::to_string(address.port());
}

uint64_t CreateListener(TestSession& session) {
  v1::CreateListenerRequest request;
  request.set_adapter_id(session.adapter_id());
  request.set_listener_context(kListenerContext);
  const auto created = session.Call(&ConnectionStub::CreateListener, request);
  ExpectOk(created);
  return created.response.listener_id();
}

uint64_t CreateConnector(TestSession& session) {
  v1::CreateConnectorRequest request;
  request.set_adapter_id(session.adapter_id());
  const auto created = session.Call(&ConnectionStub::CreateConnector, request);
  ExpectOk(created);
  return created.response.connector_id();
}

CallResult<v1::ListenResponse> Listen(TestSession& session, uint64_t listener_id, const v1::NetworkAddress& local,
                                      const std::string& name) {
  v1::ListenRequest request;
  request.set_listener_id(listener_id);
  *request.mutable_local() = local;
  request.set_name(name);
  return session.Call(&ConnectionStub::Listen, request);
}

CallResult<v1::ControlConnectEventsResponse> Pause(TestSession& session, uint64_t listener_id, bool pause) {
  v1::ControlConnectEventsRequest request;
  request.set_listener_id(listener_id);
  request.set_pause(pause);
  return session.Call(&ConnectionStub::ControlConnectEvents, request);
}

CallResult<v1::CreateSharedEndpointResponse> CreateEndpoint(TestSession& session, const v1::NetworkAddress& local) {
  v1::CreateSharedEndpointRequest request;
  request.set_adapter_id(session.adapter_id());
  *request.mutable_local() = local;
  return session.Call(&ConnectionStub::CreateSharedEndpoint, request);
}

v1::ConnectRequest RequestTo(uint64_t connector_id, const TestQueue& queue, const v1::NetworkAddress& peer) {
  auto request = PendingRequest<v1::ConnectRequest>(kConnectContext);
  request.set_connector_id(connector_id);
  request.set_qp_id(queue.qp_id());
  *request.mutable_peer() = peer;
  request.set_inbound_read_limit(1);
  request.set_outbound_read_limit(1);
  return request;
}

v1::AcceptRequest AnswerTo(uint64_t connector_id, const TestQueue& queue) {
  auto request = PendingRequest<v1::AcceptRequest>(kAcceptContext);
  request.set_connector_id(connector_id);
  request.set_qp_id(queue.qp_id());
  request.set_inbound_read_limit(1);
  request.set_outbound_read_limit(1);
  request.set_disconnect_context(kDisconnectContext);
  return request;
}

CallResult<v1::ConnectResponse> Connect(TestSession& session, const v1::ConnectRequest& request) {
  return session.Call(&ConnectionStub::Connect, request);
}

CallResult<v1::AcceptResponse> Accept(TestSession& session, const v1::AcceptRequest& request) {
  return session.Call(&ConnectionStub::Accept, request);
}

CallResult<v1::RejectResponse> Reject(TestSession& session, uint64_t connector_id, const std::string& data) {
  auto request = AboutConnector<v1::RejectRequest>(connector_id);
  request.set_private_data(data);
  return session.Call(&ConnectionStub::Reject, request);
}

CallResult<v1::GetConnectionDataResponse> ConnectionData(TestSession& session, uint64_t connector_id) {
  return session.Call(&ConnectionStub::GetConnectionData, AboutConnector<v1::GetConnectionDataRequest>(connector_id));
}

CallResult<v1::GetConnectorAddressesResponse> Addresses(TestSession& session, uint64_t connector_id) {
  return session.Call(&ConnectionStub::GetConnectorAddresses,
                      AboutConnector<v1::GetConnectorAddressesRequest>(connector_id));
}

CallResult<v1::CompleteConnectResponse> CompleteConnect(TestSession& session, uint64_t connector_id, uint64_t context) {
  auto request = PendingRequest<v1::CompleteConnectRequest>(context);
  request.set_connector_id(connector_id);
  request.set_disconnect_context(kDisconnectContext);
  return session.Call(&ConnectionStub::CompleteConnect, request);
}

CallResult<v1::DisconnectResponse> Disconnect(TestSession& session, uint64_t connector_id, uint64_t context) {
  auto request = PendingRequest<v1::DisconnectRequest>(context);
  request.set_connector_id(connector_id);
  return session.Call(&ConnectionStub::Disconnect, request);
}

CallResult<v1::CloseConnectorResponse> CloseConnector(TestSession& session, uint64_t connector_id, uint64_t context) {
  auto request = PendingRequest<v1::CloseConnectorRequest>(context);
  request.set_connector_id(connector_id);
  return session.Call(&ConnectionStub::CloseConnector, request);
}

CallResult<v1::CloseListenerResponse> CloseListener(TestSession& session, uint64_t listener_id, uint64_t context) {
  auto request = PendingRequest<v1::CloseListenerRequest>(context);
  request.set_listener_id(listener_id);
  return session.Call(&ConnectionStub::CloseListener, request);
}

CallResult<v1::CloseSharedEndpointResponse> CloseEndpoint(TestSession& session, uint64_t endpoint_id,
                                                          uint64_t context) {
  auto request = PendingRequest<v1::CloseSharedEndpointRequest>(context);
  request.set_shared_endpoint_id(endpoint_id);
  return session.Call(&ConnectionStub::CloseSharedEndpoint, request);
}

v1::NetworkAddress FreeAddress(TestSession& session) {
  const TestListener listener(session);
  ExpectOk(CloseListener(session, listener.id));
  return listener.local;
}

TestListener::TestListener(TestSession& session, const v1::NetworkAddress& address, const std::string& name)
    : id(CreateListener(session)) {
  const auto listening = Listen(session, id, address, name);
  ExpectOk(listening);
  local = listening.response.local();
  full_name = listening.response.full_name();
}

TestConnection::TestConnection(DaemonProcess& active_daemon, DaemonProcess& passive_daemon, const QueueOptions& options)
    : active(active_daemon, "active"),
      passive(passive_daemon, "passive"),
      active_queue(active, options),
      passive_queue(passive, options),
      listener(passive),
      active_id(CreateConnector(active)) {}

void TestConnection::Ask(Where where) {
  ExpectPends(Connect(active, request()), where);
  passive_id = passive.NextRequest(where).connector_id();
}

void TestConnection::Answer(Where where) {
  ExpectPends(Accept(passive, answer()), where);
  ExpectDone(active.NextCompletion(where), v1::REQUEST_KIND_CONNECT, kConnectContext, active_id, where);
}

void TestConnection::Complete(Where where) {
  ExpectOk(CompleteConnect(active, active_id), where);
  ExpectDone(passive.NextCompletion(where), v1::REQUEST_KIND_ACCEPT, kAcceptContext, passive_id, where);
}

void TestConnection::Make(Where where) {
  Ask(where);
  Answer(where);
  Complete(where);
}

void TestConnection::End(Where where) {
  ExpectPends(Disconnect(active, active_id, kEndContext), where);
  ExpectOk(Disconnect(passive, passive_id), where);
  ExpectDone(active.NextCompletion(where), v1::REQUEST_KIND_DISCONNECT, kEndContext, active_id, where);
}

}  // namespace rnicd::test
