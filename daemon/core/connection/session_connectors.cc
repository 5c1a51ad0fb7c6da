#include "daemon/core/connection/session_connectors.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/status.h"
#include "daemon/core/connection/local_address.h"
#include "daemon/core/connection/session_listeners.h"

namespace rnicd::core {
namespace {

// Whether a peer can have the address. Multicast is none.
bool IsPeerAddress(const IpAddress& ip) {
  constexpr uint8_t kMulticastOfIpv6 = 0xff;
  constexpr uint8_t kFirstMulticastOfIpv4 = 224;
  constexpr size_t kIpv4Offset = 12;
  const bool multicast =
      ip.is_ipv4() ? ip.bytes()[kIpv4Offset] >= kFirstMulticastOfIpv4 : ip.bytes()[0] == kMulticastOfIpv6;
  return !ip.is_wildcard() && !multicast;
}

// "local=10.98.0.1:7000 peer=10.98.0.2:50000", for the audit log.
std::string Described(const NetworkAddress& local, const NetworkAddress& peer) {
  return "local=" + local.ToText() + " peer=" + peer.ToText();
}

}  // namespace

absl::StatusOr<ConnectorId> SessionConnectors::Create(AdapterId adapter_id) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Adapter> adapter, FindIn(named_.adapters, adapter_id, "adapter_id"));
  RNICD_ASSIGN_OR_RETURN(Kept<Adapter> kept, Adapter::Keep(std::move(adapter)));
  if (kept->device().addresses().empty()) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE, "adapter_id");
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kConnectors));
  const auto connector = Connector::Create({.adapter = std::move(kept), .charge = std::move(charge)}, requests_);
  const ConnectorId id = table_.Insert(connector);
  connector->Publish(id);
  return id;
}

MaybePending<> SessionConnectors::Pend(ConnectorId id, RequestKind kind, PendingChoice choice, const Done<>& done,
                                       const Call& call) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Connector> connector, FindIn(table_, id, "connector_id"));
  RNICD_ASSIGN_OR_RETURN(const Closable::Hold hold, connector->Acquire());
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kPendingRequests));
  RNICD_RETURN_IF_ERROR(call(*connector, requests_.Report<void>(kind, id.value, choice, std::move(charge), done)));
  return MaybePending<>::Pending();
}

absl::StatusOr<NetworkAddress> SessionConnectors::PeerOf(const ConnectArguments& arguments, Adapter& adapter) const {
  const Tenant& tenant = lease_.tenant();
  NetworkAddress peer = arguments.peer;
  std::optional<uint64_t> holder;
  if (!arguments.peer_name.empty()) {
    const std::optional<ListenerPlace> place = node_.addresses.Find(FullListenerName(lease_, arguments.peer_name));
    if (!place.has_value()) {
      return MakeError(ErrorReason::NAME_NOT_FOUND, "peer_name");
    }
    peer = place->address;
    holder = place->tenant;
  } else {
    holder = node_.addresses.HolderOf(peer);
  }
  const bool is_own = holder == tenant.number();
  if (!is_own && !tenant.connections()->MayReach(peer)) {
    return MakeError(ErrorReason::ADDRESS_NOT_PERMITTED, arguments.peer_name.empty() ? "peer" : "peer_name");
  }
  const std::vector<IpAddress> own = adapter.device().addresses();
  const bool is_loopback = std::ranges::find(own, peer.ip) != own.end();
  if (!IsPeerAddress(peer.ip) || (is_loopback && (adapter.info().adapter_flags & kAdapterFlagLoopback) == 0)) {
    return MakeError(ErrorReason::ADDRESS_INVALID, "peer.address");
  }
  return peer;
}

absl::StatusOr<Kept<QueuePair>> SessionConnectors::KeepPair(QueuePairId id) const {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<QueuePair> pair, FindIn(named_.pairs, id, "qp_id"));
  return Kept<QueuePair>::Of(std::move(pair));
}

absl::Status SessionConnectors::ConnectFrom(Connector& connector, const ConnectArguments& arguments,
                                            const NetworkAddress& peer, const Done<>& done) {
  const auto connect = [&](Connector::Source source) -> absl::Status {
    if (source.address.ip.is_ipv4() != peer.ip.is_ipv4()) {
      return MakeError(ErrorReason::NETWORK_UNREACHABLE, "peer");
    }
    RNICD_ASSIGN_OR_RETURN(Kept<QueuePair> pair, KeepPair(arguments.queue_pair));
    ConnectArguments resolved = arguments;
    resolved.peer = peer;
    const NetworkAddress local = source.address;
    RNICD_RETURN_IF_ERROR(connector.Connect(resolved, std::move(pair), std::move(source), done));
    lease_.ReportDetail("connection.connect",
                        "connector_id=" + std::to_string(arguments.connector.value) + " " + Described(local, peer),
                        absl::OkStatus());
    return absl::OkStatus();
  };
  if (arguments.endpoint.value == 0) {
    LocalAddress local = arguments.local;
    if (!local.ip.has_value()) {
      local.ip = AddressToReach(connector.adapter(), peer.ip);
    }
    return TakeLocalAddress(node_.addresses, lease_, connector.adapter(), local, Purpose::kConnect,
                            [&connect](AddressBook::Claim claim) {
                              return connect({.address = claim.address, .hold = std::move(claim.hold)});
                            });
  }
  if (arguments.local.ip.has_value() || arguments.local.port != 0) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "local");
  }
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<SharedEndpoint> endpoint,
                         FindIn(named_.endpoints, arguments.endpoint, "shared_endpoint_id"));
  if (&endpoint->adapter() != &connector.adapter()) {
    return MakeError(ErrorReason::ADAPTER_MISMATCH, "shared_endpoint_id");
  }
  RNICD_ASSIGN_OR_RETURN(Closable::Hold hold, endpoint->Acquire());
  RNICD_ASSIGN_OR_RETURN(AddressBook::Hold entry, endpoint->AddPeer(peer));
  return connect(
      {.address = endpoint->local(), .hold = std::move(entry), .endpoint = std::move(hold), .is_shared = true});
}

MaybePending<> SessionConnectors::Connect(const ConnectArguments& arguments, PendingChoice choice, const Done<>& done) {
  return Pend(arguments.connector, RequestKind::kConnect, choice, done,
              [&](Connector& connector, const Done<>& report) -> absl::Status {
                RNICD_ASSIGN_OR_RETURN(const NetworkAddress peer, PeerOf(arguments, connector.adapter()));
                return ConnectFrom(connector, arguments, peer, report);
              });
}

MaybePending<> SessionConnectors::CompleteConnect(ConnectorId id, uint64_t disconnect_context, PendingChoice choice,
                                                  const Done<>& done) {
  return Pend(id, RequestKind::kCompleteConnect, choice, done, [&](Connector& connector, Done<> report) {
    return connector.CompleteConnect(disconnect_context, std::move(report));
  });
}

MaybePending<> SessionConnectors::Accept(const AcceptArguments& arguments, PendingChoice choice, const Done<>& done) {
  return Pend(arguments.connector, RequestKind::kAccept, choice, done,
              [&](Connector& connector, Done<> report) -> absl::Status {
                RNICD_ASSIGN_OR_RETURN(Kept<QueuePair> pair, KeepPair(arguments.queue_pair));
                return connector.Accept(arguments, std::move(pair), std::move(report));
              });
}

MaybePending<> SessionConnectors::Disconnect(ConnectorId id, PendingChoice choice, const Done<>& done) {
  return Pend(id, RequestKind::kDisconnect, choice, done,
              [](Connector& connector, Done<> report) { return connector.Disconnect(std::move(report)); });
}

absl::Status SessionConnectors::Reject(ConnectorId id, std::string_view private_data) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Connector> connector, FindIn(table_, id, "connector_id"));
  RNICD_ASSIGN_OR_RETURN(const Closable::Hold hold, connector->Acquire());
  return connector->Reject(private_data);
}

absl::StatusOr<ConnectionData> SessionConnectors::Data(ConnectorId id) const {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Connector> connector, FindIn(table_, id, "connector_id"));
  return connector->Data();
}

absl::StatusOr<ConnectionAddresses> SessionConnectors::Addresses(ConnectorId id) const {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Connector> connector, FindIn(table_, id, "connector_id"));
  return connector->Addresses();
}

// The id is dead at once. A request that pends ends first.
MaybePending<> SessionConnectors::Close(ConnectorId id, PendingChoice choice, const Done<>& done) {
  const std::shared_ptr<Connector> connector = table_.Remove(id);
  if (connector == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "connector_id");
  }
  connector->Cancel(MakeError(ErrorReason::CONNECTION_CANCELLED));
  return CloseRemoved(*connector, ReportClose(RequestKind::kCloseConnector, id, choice, *connector, done));
}

absl::StatusOr<std::shared_ptr<Connector>> SessionConnectors::MakeFor(Listener& listener,
                                                                      provider::ConnectionRequest& request) {
  const bool is_own = node_.addresses.HolderOf(request.peer) == lease_.tenant().number();
  if (!is_own && !lease_.tenant().connections()->Accepts(request.peer.ip)) {
    return MakeError(ErrorReason::ADDRESS_NOT_PERMITTED, "peer");
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kConnectors));
  RNICD_ASSIGN_OR_RETURN(Closable::Hold hold, listener.Acquire());
  RNICD_ASSIGN_OR_RETURN(Kept<Adapter> adapter, Kept<Adapter>::Of(listener.adapter()));
  return Connector::CreateFor(std::move(request), {.listener = listener.id(), .context = listener.context()},
                              {.adapter = std::move(adapter), .charge = std::move(charge), .listener = std::move(hold)},
                              requests_);
}

std::shared_ptr<provider::ConnectorListener> SessionConnectors::TakeRequest(Listener& listener,
                                                                            provider::ConnectionRequest request) {
  const absl::StatusOr<SessionGuard> guard = lease_.Begin();
  if (!guard.ok()) {
    return nullptr;
  }
  std::string object = "listener_id=" + std::to_string(listener.id().value) + " ";
  const std::string addresses = Described(request.local, request.peer);
  const absl::StatusOr<std::shared_ptr<Connector>> made = MakeFor(listener, request);
  if (!made.ok()) {
    lease_.ReportDecision("connection.request", object + addresses, made.status());
    return nullptr;
  }
  const ConnectorId id = table_.Insert(*made);
  (*made)->Publish(id);
  object += "connector_id=" + std::to_string(id.value) + " ";
  lease_.ReportDecision("connection.request", object + addresses, absl::OkStatus());
  std::shared_ptr<provider::ConnectorListener> events = (*made)->NewListener();
  (*made)->Announce();
  return events;
}

}  // namespace rnicd::core
