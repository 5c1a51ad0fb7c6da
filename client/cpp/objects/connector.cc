#include "client/cpp/connector.h"

#include <optional>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/objects/close_now.h"
#include "client/cpp/objects/convert.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/session/connection.h"

namespace rnicd::inline client {
namespace {

// Time that the daemon has for its peer in one call: twice the default of its --connection_timeout_ms.
constexpr std::chrono::milliseconds kPeerWait{60'000};

v1::CloseConnectorRequest CloseConnectorMessage(ConnectorId id) {
  v1::CloseConnectorRequest request;
  request.set_connector_id(id.value);
  return request;
}

// Pending is fine: the daemon closes the endpoint when its last connector is closed, and nothing waits for that event.
v1::CloseSharedEndpointRequest CloseEndpointMessage(SharedEndpointId id) {
  v1::CloseSharedEndpointRequest request;
  request.set_shared_endpoint_id(id.value);
  request.set_allow_pending(true);
  return request;
}

// The fields that Connect and Accept have in common.
template <typename Options, typename Request>
void SetOffer(const Options& options, Request* request) {
  request->set_inbound_read_limit(options.inbound_read_limit);
  request->set_outbound_read_limit(options.outbound_read_limit);
  request->set_private_data(options.private_data);
}

void SetPeer(const ListenerAddress& peer, v1::ConnectRequest* request) {
  if (const auto* const name = std::get_if<std::string>(&peer)) {
    request->set_peer_name(*name);
  } else {
    *request->mutable_peer() = wire::ToWire(std::get<NetworkAddress>(peer));
  }
}

}  // namespace

// Id of the connector in the daemon.
struct Connector::Open {
  ~Open() {
    // In a child made by fork their locks are in any state.
    if (connection->CheckProcess().ok()) {
      connection->queue_events().Remove(id);
      connection->connection_events().Remove(id);
    }
    if (!closed) {
      connection->Release(kCloseConnector, CloseConnectorMessage(id));
    }
  }

  // A call that waits for the peer. It does not overtake what was posted before, which is the receives that the peer
  // needs, or what a disconnect ends.
  template <typename Request, typename Response>
  absl::Status CallPeer(const Method<Request, Response>& method, const Request& request) const {
    (void)connection->rings().AwaitPosts(connection->options().call_deadline);
    return connection->Call(method, request, kPeerWait).status();
  }
  // Has the handler called at the disconnection, if there is one.
  void Watch(const std::function<void()>& on_disconnected) const {
    if (on_disconnected) {
      connection->events().ExpectCallbacks();
      connection->queue_events().Watch(id, on_disconnected);
    }
  }

  std::shared_ptr<Connection> connection;
  ConnectorId id;
  bool closed = false;
  // Kept by Establish, which completes before anyone can ask.
  std::optional<ConnectionData> answer;
};

Connector Connector::Adopt(std::shared_ptr<Connection> connection, ConnectorId id) {
  const auto open = std::make_shared<Open>();
  open->connection = std::move(connection);
  open->id = id;
  open->connection->connection_events().Watch(id);
  return Connector(open);
}

absl::StatusOr<Connector> Connector::Create(const Client& client) {
  if (client.connection() == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  return CreateOn(client.connection());
}

absl::StatusOr<Connector> Connector::CreateOn(const std::shared_ptr<Connection>& connection) {
  RNICD_ASSIGN_OR_RETURN(const AdapterId adapter, connection->Adapter());
  v1::CreateConnectorRequest request;
  request.set_adapter_id(adapter.value);
  RNICD_ASSIGN_OR_RETURN(const v1::CreateConnectorResponse created, connection->Call(kCreateConnector, request));
  return Adopt(connection, ConnectorId{created.connector_id()});
}

absl::StatusOr<Connector> Connector::Establish(const QueuePair& pair, const ListenerAddress& peer,
                                               const ConnectOptions& options) {
  if (pair.connection() == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "qp_id");
  }
  RNICD_ASSIGN_OR_RETURN(Connector connector, CreateOn(pair.connection()));
  RNICD_RETURN_IF_ERROR(connector.Connect(pair, peer, options));
  RNICD_ASSIGN_OR_RETURN(connector.open_->answer, connector.GetConnectionData());
  RNICD_RETURN_IF_ERROR(connector.CompleteConnect());
  return connector;
}

ConnectorId Connector::id() const { return open_ == nullptr ? ConnectorId{} : open_->id; }

absl::Status Connector::CheckPair(const QueuePair& pair) const {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  return pair.connection() == open_->connection ? absl::OkStatus() : MakeError(ErrorReason::OBJECT_NOT_FOUND, "qp_id");
}

absl::Status Connector::Connect(const QueuePair& pair, const ListenerAddress& peer, const ConnectOptions& options) {
  RNICD_RETURN_IF_ERROR(CheckPair(pair));
  v1::ConnectRequest request;
  request.set_connector_id(open_->id.value);
  request.set_qp_id(pair.id().value);
  SetOffer(options, &request);
  SetPeer(peer, &request);
  SetLocal(options.local, &request);
  if (options.shared_endpoint != nullptr) {
    request.set_shared_endpoint_id(options.shared_endpoint->id().value);
  }
  open_->Watch(options.on_disconnected);
  return open_->CallPeer(kConnect, request);
}

absl::Status Connector::CompleteConnect() {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::CompleteConnectRequest request;
  request.set_connector_id(open_->id.value);
  return open_->CallPeer(kCompleteConnect, request);
}

absl::Status Connector::Accept(const QueuePair& pair, const AcceptOptions& options) {
  RNICD_RETURN_IF_ERROR(CheckPair(pair));
  v1::AcceptRequest request;
  request.set_connector_id(open_->id.value);
  request.set_qp_id(pair.id().value);
  SetOffer(options, &request);
  open_->Watch(options.on_disconnected);
  return open_->CallPeer(kAccept, request);
}

absl::Status Connector::Reject(std::string_view private_data) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::RejectRequest request;
  request.set_connector_id(open_->id.value);
  request.set_private_data(private_data.data(), private_data.size());
  return open_->connection->Call(kReject, request).status();
}

absl::StatusOr<ConnectionData> Connector::GetConnectionData() const {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  if (open_->answer.has_value()) {
    return *open_->answer;
  }
  v1::GetConnectionDataRequest request;
  request.set_connector_id(open_->id.value);
  RNICD_ASSIGN_OR_RETURN(const v1::GetConnectionDataResponse data,
                         open_->connection->Call(kGetConnectionData, request));
  return ConnectionData{.private_data = data.private_data(),
                        .inbound_read_limit = data.inbound_read_limit(),
                        .outbound_read_limit = data.outbound_read_limit()};
}

absl::StatusOr<ConnectorAddresses> Connector::GetAddresses() const {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::GetConnectorAddressesRequest request;
  request.set_connector_id(open_->id.value);
  RNICD_ASSIGN_OR_RETURN(const v1::GetConnectorAddressesResponse both,
                         open_->connection->Call(kGetConnectorAddresses, request));
  ConnectorAddresses addresses;
  RNICD_ASSIGN_OR_RETURN(addresses.local, AddressFromWire(both.local()));
  RNICD_ASSIGN_OR_RETURN(addresses.peer, AddressFromWire(both.peer()));
  return addresses;
}

absl::Status Connector::Disconnect() {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::DisconnectRequest request;
  request.set_connector_id(open_->id.value);
  return open_->CallPeer(kDisconnect, request);
}

absl::StatusOr<bool> Connector::WaitForDisconnect(std::chrono::milliseconds wait_max) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  Connection& connection = *open_->connection;
  RNICD_RETURN_IF_ERROR(connection.CheckProcess());
  std::optional<absl::Status> disconnected;
  connection.events().Await(DeadlineAfter(wait_max), [&] {
    disconnected = connection.connection_events().DisconnectionOf(open_->id);
    return disconnected.has_value();
  });
  if (disconnected.has_value()) {
    RNICD_RETURN_IF_ERROR(*disconnected);
  }
  return disconnected.has_value();
}

absl::Status Connector::Close() { return CloseNow(open_, kCloseConnector, CloseConnectorMessage); }

// Id of the endpoint in the daemon.
struct SharedEndpoint::Open {
  ~Open() {
    if (!closed) {
      connection->Release(kCloseSharedEndpoint, CloseEndpointMessage(id));
    }
  }

  std::shared_ptr<Connection> connection;
  SharedEndpointId id;
  bool closed = false;
  NetworkAddress local;
};

absl::StatusOr<SharedEndpoint> SharedEndpoint::Create(const Client& client, const NetworkAddress& local) {
  const std::shared_ptr<Connection>& connection = client.connection();
  if (connection == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const AdapterId adapter, connection->Adapter());
  v1::CreateSharedEndpointRequest request;
  request.set_adapter_id(adapter.value);
  SetLocal(local, &request);
  RNICD_ASSIGN_OR_RETURN(const v1::CreateSharedEndpointResponse created,
                         connection->Call(kCreateSharedEndpoint, request));
  const auto open = std::make_shared<Open>();
  open->connection = connection;
  open->id = SharedEndpointId{created.shared_endpoint_id()};
  RNICD_ASSIGN_OR_RETURN(open->local, AddressFromWire(created.local()));
  return SharedEndpoint(open);
}

SharedEndpointId SharedEndpoint::id() const { return open_ == nullptr ? SharedEndpointId{} : open_->id; }

NetworkAddress SharedEndpoint::local() const { return open_ == nullptr ? NetworkAddress{} : open_->local; }

absl::Status SharedEndpoint::Close() { return CloseNow(open_, kCloseSharedEndpoint, CloseEndpointMessage); }

}  // namespace rnicd::inline client
