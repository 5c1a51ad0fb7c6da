#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/core/connection/session_connectors.h"
#include "daemon/core/connection/session_endpoints.h"
#include "daemon/core/connection/session_listeners.h"
#include "daemon/service/messages/connection_wire.h"
#include "daemon/service/messages/pending.h"
#include "daemon/service/service_methods.h"
#include "rnicd/v1/connection_service.pb.h"

namespace rnicd::service {
namespace {

// Replies for a request that pends: with its outcome, or at once where the caller allows it. `begin` begins it.
template <typename Request, typename Response, typename Begin>
void ReplyWhenDone(const Request& request, const gate::Reply<Response>& reply, const Begin& begin) {
  const core::Done<> done = DoneOf(reply);
  ReplyToBegun(begin(ChoiceOf(request), done), request.allow_pending(), done, reply);
}

// --- listeners and shared endpoints ---

absl::Status CreateListener(const core::SessionGuard& session, const v1::CreateListenerRequest& request,
                            v1::CreateListenerResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const ListenerId id,
                         session.listeners().Create(AdapterId{request.adapter_id()}, request.listener_context()));
  response->set_listener_id(id.value);
  return absl::OkStatus();
}

absl::Status Listen(const core::SessionGuard& session, const v1::ListenRequest& request, v1::ListenResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const core::LocalAddress local, LocalFromWire(request.local()));
  RNICD_ASSIGN_OR_RETURN(const core::ListeningAt at,
                         session.listeners().Listen(ListenerId{request.listener_id()}, local, request.name()));
  *response->mutable_local() = wire::ToWire(at.local);
  response->set_full_name(at.full_name);
  return absl::OkStatus();
}

absl::Status ControlConnectEvents(const core::SessionGuard& session, const v1::ControlConnectEventsRequest& request,
                                  v1::ControlConnectEventsResponse* /*response*/) {
  return session.listeners().SetPaused(ListenerId{request.listener_id()}, request.pause());
}

absl::Status GetListenerLocalAddress(const core::SessionGuard& session,
                                     const v1::GetListenerLocalAddressRequest& request,
                                     v1::GetListenerLocalAddressResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const NetworkAddress local,
                         session.listeners().LocalAddressOf(ListenerId{request.listener_id()}));
  *response->mutable_local() = wire::ToWire(local);
  return absl::OkStatus();
}

void CloseListener(const core::SessionGuard& session, const v1::CloseListenerRequest& request,
                   const gate::Reply<v1::CloseListenerResponse>& reply) {
  ReplyWhenDone(request, reply, [&](core::PendingChoice choice, const core::Done<>& done) {
    return session.listeners().Close(ListenerId{request.listener_id()}, choice, done);
  });
}

absl::Status CreateSharedEndpoint(const core::SessionGuard& session, const v1::CreateSharedEndpointRequest& request,
                                  v1::CreateSharedEndpointResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const core::LocalAddress local, LocalFromWire(request.local()));
  RNICD_ASSIGN_OR_RETURN(const auto created, session.endpoints().Create(AdapterId{request.adapter_id()}, local));
  response->set_shared_endpoint_id(created.id.value);
  *response->mutable_local() = wire::ToWire(created.local);
  return absl::OkStatus();
}

void CloseSharedEndpoint(const core::SessionGuard& session, const v1::CloseSharedEndpointRequest& request,
                         const gate::Reply<v1::CloseSharedEndpointResponse>& reply) {
  ReplyWhenDone(request, reply, [&](core::PendingChoice choice, const core::Done<>& done) {
    return session.endpoints().Close(SharedEndpointId{request.shared_endpoint_id()}, choice, done);
  });
}

// --- connectors ---

absl::Status CreateConnector(const core::SessionGuard& session, const v1::CreateConnectorRequest& request,
                             v1::CreateConnectorResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const ConnectorId id, session.connectors().Create(AdapterId{request.adapter_id()}));
  response->set_connector_id(id.value);
  return absl::OkStatus();
}

absl::StatusOr<core::ConnectArguments> ArgumentsOf(const v1::ConnectRequest& request) {
  core::ConnectArguments arguments{
      .connector = ConnectorId{request.connector_id()},
      .queue_pair = QueuePairId{request.qp_id()},
      .endpoint = SharedEndpointId{request.shared_endpoint_id()},
      .peer_name = request.peer_name(),
      .limits = {.inbound = request.inbound_read_limit(), .outbound = request.outbound_read_limit()},
      .private_data = request.private_data()};
  RNICD_ASSIGN_OR_RETURN(arguments.local, LocalFromWire(request.local()));
  if (request.has_peer() == !request.peer_name().empty()) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "peer");
  }
  if (request.has_peer()) {
    RNICD_ASSIGN_OR_RETURN(arguments.peer, PeerFromWire(request.peer()));
  }
  return arguments;
}

void Connect(const core::SessionGuard& session, const v1::ConnectRequest& request,
             const gate::Reply<v1::ConnectResponse>& reply) {
  const absl::StatusOr<core::ConnectArguments> arguments = ArgumentsOf(request);
  if (!arguments.ok()) {
    reply(arguments.status());
    return;
  }
  ReplyWhenDone(request, reply, [&](core::PendingChoice choice, const core::Done<>& done) {
    return session.connectors().Connect(*arguments, choice, done);
  });
}

void CompleteConnect(const core::SessionGuard& session, const v1::CompleteConnectRequest& request,
                     const gate::Reply<v1::CompleteConnectResponse>& reply) {
  ReplyWhenDone(request, reply, [&](core::PendingChoice choice, const core::Done<>& done) {
    return session.connectors().CompleteConnect(ConnectorId{request.connector_id()}, request.disconnect_context(),
                                                choice, done);
  });
}

void Accept(const core::SessionGuard& session, const v1::AcceptRequest& request,
            const gate::Reply<v1::AcceptResponse>& reply) {
  const core::AcceptArguments arguments{
      .connector = ConnectorId{request.connector_id()},
      .queue_pair = QueuePairId{request.qp_id()},
      .limits = {.inbound = request.inbound_read_limit(), .outbound = request.outbound_read_limit()},
      .private_data = request.private_data(),
      .disconnect_context = request.disconnect_context()};
  ReplyWhenDone(request, reply, [&](core::PendingChoice choice, const core::Done<>& done) {
    return session.connectors().Accept(arguments, choice, done);
  });
}

absl::Status Reject(const core::SessionGuard& session, const v1::RejectRequest& request,
                    v1::RejectResponse* /*response*/) {
  return session.connectors().Reject(ConnectorId{request.connector_id()}, request.private_data());
}

absl::Status GetConnectionData(const core::SessionGuard& session, const v1::GetConnectionDataRequest& request,
                               v1::GetConnectionDataResponse* response) {
  RNICD_ASSIGN_OR_RETURN(core::ConnectionData data, session.connectors().Data(ConnectorId{request.connector_id()}));
  response->set_private_data(std::move(data.private_data));
  response->set_inbound_read_limit(data.limits.inbound);
  response->set_outbound_read_limit(data.limits.outbound);
  return absl::OkStatus();
}

absl::Status GetConnectorAddresses(const core::SessionGuard& session, const v1::GetConnectorAddressesRequest& request,
                                   v1::GetConnectorAddressesResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const core::ConnectionAddresses addresses,
                         session.connectors().Addresses(ConnectorId{request.connector_id()}));
  *response->mutable_local() = wire::ToWire(addresses.local);
  *response->mutable_peer() = wire::ToWire(addresses.peer);
  return absl::OkStatus();
}

void Disconnect(const core::SessionGuard& session, const v1::DisconnectRequest& request,
                const gate::Reply<v1::DisconnectResponse>& reply) {
  ReplyWhenDone(request, reply, [&](core::PendingChoice choice, const core::Done<>& done) {
    return session.connectors().Disconnect(ConnectorId{request.connector_id()}, choice, done);
  });
}

void CloseConnector(const core::SessionGuard& session, const v1::CloseConnectorRequest& request,
                    const gate::Reply<v1::CloseConnectorResponse>& reply) {
  ReplyWhenDone(request, reply, [&](core::PendingChoice choice, const core::Done<>& done) {
    return session.connectors().Close(ConnectorId{request.connector_id()}, choice, done);
  });
}

}  // namespace

std::vector<gate::Method> ConnectionMethods() {
  using core::Row;
  using gate::Serve;
  return {
      Serve(Row("ConnectionService.CreateListener"), CreateListener),
      Serve(Row("ConnectionService.Listen"), Listen),
      Serve(Row("ConnectionService.ControlConnectEvents"), ControlConnectEvents),
      Serve(Row("ConnectionService.GetListenerLocalAddress"), GetListenerLocalAddress),
      Serve(Row("ConnectionService.CloseListener"), CloseListener),
      Serve(Row("ConnectionService.CreateSharedEndpoint"), CreateSharedEndpoint),
      Serve(Row("ConnectionService.CloseSharedEndpoint"), CloseSharedEndpoint),
      Serve(Row("ConnectionService.CreateConnector"), CreateConnector),
      Serve(Row("ConnectionService.Connect"), Connect),
      Serve(Row("ConnectionService.CompleteConnect"), CompleteConnect),
      Serve(Row("ConnectionService.Accept"), Accept),
      Serve(Row("ConnectionService.Reject"), Reject),
      Serve(Row("ConnectionService.GetConnectionData"), GetConnectionData),
      Serve(Row("ConnectionService.GetConnectorAddresses"), GetConnectorAddresses),
      Serve(Row("ConnectionService.Disconnect"), Disconnect),
      Serve(Row("ConnectionService.CloseConnector"), CloseConnector),
  };
}

}  // namespace rnicd::service
