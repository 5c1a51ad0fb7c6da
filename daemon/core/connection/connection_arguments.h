#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ndk/network_address.h"
#include "base/strong_id.h"

namespace rnicd::core {

// What one side of a connection asks for; see connection_service.proto.
struct ReadLimits {
  uint32_t inbound = 0;
  uint32_t outbound = 0;
};

// An address of this side, as a caller asks for it.
struct LocalAddress {
  // Empty: the adapter's first.
  std::optional<IpAddress> ip;
  // 0: any that is free.
  uint16_t port = 0;
};

struct ConnectArguments {
  ConnectorId connector;
  QueuePairId queue_pair;
  LocalAddress local;
  // 0: none.
  SharedEndpointId endpoint;
  NetworkAddress peer;
  // In place of `peer`; empty: none.
  std::string peer_name;
  ReadLimits limits;
  std::string private_data;
};

struct AcceptArguments {
  ConnectorId connector;
  QueuePairId queue_pair;
  ReadLimits limits;
  std::string private_data;
  uint64_t disconnect_context = 0;
};

struct ConnectionData {
  std::string private_data;
  // Effective ones.
  ReadLimits limits;
};

struct ConnectionAddresses {
  NetworkAddress local;
  NetworkAddress peer;
};

enum class ConnectorState : uint8_t {
  kIdle,
  // Connect waits for the peer.
  kConnecting,
  // The peer has accepted.
  kAnswered,
  // CompleteConnect is under way.
  kCompleting,
  // A request that is not decided yet.
  kRequested,
  // Accept waits for the peer.
  kAccepting,
  kConnected,
  // The peer has disconnected.
  kPeerGone,
  // Disconnect waits for the peer.
  kDisconnecting,
  // Only a close is left.
  kEnded,
};

// A connector as shown to an operator.
struct ConnectionView {
  ConnectorId connector;
  bool passive = false;
  ConnectorState state = ConnectorState::kIdle;
  ConnectionAddresses addresses;
  QueuePairId queue_pair;
  // When the state began.
  Instant since;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

}  // namespace rnicd::core
