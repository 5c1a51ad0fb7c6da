#include "daemon/service/messages/connection_wire.h"

#include <cstdint>

#include "base/status.h"

namespace rnicd::service {

absl::StatusOr<core::LocalAddress> LocalFromWire(const v1::NetworkAddress& message) {
  if (!message.address().empty()) {
    const absl::StatusOr<NetworkAddress> local = wire::FromWire(message);
    if (!local.ok()) {
      return WithFieldPrefix(local.status(), "local.");
    }
    return core::LocalAddress{.ip = local->ip, .port = local->port};
  }
  if (message.port() > UINT16_MAX) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "local.port");
  }
  return core::LocalAddress{.port = static_cast<uint16_t>(message.port())};
}

absl::StatusOr<NetworkAddress> PeerFromWire(const v1::NetworkAddress& message) {
  const absl::StatusOr<NetworkAddress> peer = wire::FromWire(message);
  if (!peer.ok()) {
    return WithFieldPrefix(peer.status(), "peer.");
  }
  return peer->port == 0 ? MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "peer.port") : peer;
}

v1::ConnectionState ToWire(core::ConnectorState state) {
  switch (state) {
    case core::ConnectorState::kIdle:
      return v1::CONNECTION_STATE_UNSPECIFIED;
    case core::ConnectorState::kConnecting:
      return v1::CONNECTION_STATE_CONNECTING;
    case core::ConnectorState::kAnswered:
      return v1::CONNECTION_STATE_ANSWERED;
    case core::ConnectorState::kCompleting:
      return v1::CONNECTION_STATE_COMPLETING;
    case core::ConnectorState::kRequested:
      return v1::CONNECTION_STATE_REQUESTED;
    case core::ConnectorState::kAccepting:
      return v1::CONNECTION_STATE_ACCEPTING;
    case core::ConnectorState::kConnected:
      return v1::CONNECTION_STATE_CONNECTED;
    case core::ConnectorState::kPeerGone:
      return v1::CONNECTION_STATE_PEER_GONE;
    case core::ConnectorState::kDisconnecting:
      return v1::CONNECTION_STATE_DISCONNECTING;
    case core::ConnectorState::kEnded:
      return v1::CONNECTION_STATE_ENDED;
  }
  return v1::CONNECTION_STATE_UNSPECIFIED;
}

}  // namespace rnicd::service
