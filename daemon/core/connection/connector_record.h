#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "base/clock.h"
#include "daemon/core/connection/connection_arguments.h"
#include "daemon/core/queue/queue_pair.h"
#include "daemon/core/request/address_book.h"
#include "daemon/core/request/alarms.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/request/maybe_pending.h"
#include "provider/api/connection.h"

// Parts of a Connector, used under its lock.
namespace rnicd::core {

// What begins with Connect or a peer's request, and ends with a failure or the close.
struct ConnectorAttempt {
  // The card has it weakly.
  std::shared_ptr<provider::ConnectorListener> listener;
  // Shared, because an event may end the attempt while a call to the card has not returned.
  std::shared_ptr<provider::DeviceConnector> device;
  std::optional<Kept<QueuePair>> pair;
  QueuePairId queue_pair;
  AddressBook::Hold source;
  // The shared endpoint, if the source is one.
  Closable::Hold endpoint;
  // The request that waits for the peer; null: none.
  Done<> done;
  Closable::Hold hold;
  Alarms::Key alarm;
};

struct ConnectorRecord {
  ConnectorId id;
  bool passive = false;
  ConnectorState state = ConnectorState::kIdle;
  Instant since;
  ConnectionAddresses addresses;
  // Increases with the end of each attempt.
  uint64_t attempt = 0;
  // Own limits, capped at the adapter's; then the effective ones.
  ReadLimits limits;
  provider::ConnectionOffer received;
  uint64_t sent_bytes = 0;
  // `received` is what came with a rejection.
  bool was_rejected = false;
  // The connection has broken, or the peer has disconnected.
  bool is_lost = false;
  // The peer has disconnected, as the card says; and this side has flushed. In any order.
  bool peer_is_gone = false;
  bool is_flushed = false;
  // Why the connector has ended, if it failed.
  absl::Status failure;
};

// Events to be fetched, and whether the connector waits in the event queue for that.
struct ConnectorEvents {
  std::optional<ConnectRequested> request;
  bool disconnect = false;
  uint64_t disconnect_context = 0;
  bool queued = false;
  bool closed = false;
};

}  // namespace rnicd::core
