#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ndk/network_address.h"
#include "base/strong_id.h"

namespace rnicd::inline client {

class Client;
class Connection;
class QueuePair;
class SharedEndpoint;

// A listener: its name on this node, "namespace/name", or without "/" one of this process's own namespace or tenant; or
// its address and port.
using ListenerAddress = std::variant<std::string, NetworkAddress>;

// What Accept tells the peer.
struct AcceptOptions {
  // Reads of the peer that this side executes at a time. The effective limit is the least of both sides' and the
  // adapter's, which the default is. 0: none.
  uint32_t inbound_read_limit = UINT32_MAX;
  // Own reads at a time, likewise; with 0 a post of one is refused.
  uint32_t outbound_read_limit = UINT32_MAX;
  // For the peer's GetConnectionData: at most NdkAdapterInfo::max_callee_data bytes.
  std::string private_data;
  // Called at most once, when the peer has disconnected or the connection broke, unless this side's Disconnect or Close
  // came first. This does not flush requests. Runs on librnicd's thread or in Client::Progress; must not block for
  // long, but may use and drop any object. May be empty.
  std::function<void()> on_disconnected;
};

// What Connect tells the peer, and from where.
struct ConnectOptions {
  // As AcceptOptions.
  uint32_t inbound_read_limit = UINT32_MAX;
  uint32_t outbound_read_limit = UINT32_MAX;
  // For the peer's GetConnectionData: at most NdkAdapterInfo::max_caller_data bytes.
  std::string private_data;
  // As AcceptOptions.
  std::function<void()> on_disconnected;
  // The source: an address of the adapter, by default its first. Port 0: a free one.
  NetworkAddress local;
  // The source in place of `local`; null: none. Used during Connect only.
  const SharedEndpoint* shared_endpoint = nullptr;
};

// What the peer has said, and what both sides have agreed on.
struct ConnectionData {
  // May be longer than what the peer sent: RoCE pads with zeros, so the data should carry their own length.
  std::string private_data;
  // Effective limits; before Accept the peer's offer, capped at the adapter's limits.
  uint32_t inbound_read_limit = 0;
  uint32_t outbound_read_limit = 0;
};

struct ConnectorAddresses {
  NetworkAddress local;
  NetworkAddress peer;
};

// One end of a connection that is made by address or name, and belongs to a queue pair: an NDK connector.
//
//     auto connector = rnicd::Connector::Establish(pair, "array");  // the active side
//     auto request = listener.NextRequest(30s);                     // the passive side, and then:
//     request->Accept(pair);
//
// Post receives before Connect and before Accept. A connector and its queue pair serve one connection.
//
// Lifetime: keeps the session. The destructor ends the connection at once, within ClientOptions::release_deadline; an
//           undecided request is rejected. Declare it behind its queue pair, whose close waits for it. It waits for
//           on_disconnected if that is running on another thread. A moved-from connector is closed and may be destroyed
//           or assigned.
// Threads:  calls are safe from several threads at once; moving and destroying are not. Connect, CompleteConnect,
//           Accept and Disconnect wait for the peer, which the daemon allows for its --connection_timeout_ms; their
//           timeout is a minute more than ClientOptions::call_deadline.
// Errors:   CONNECTOR_STATE for a call that is not the next step; OBJECT_NOT_FOUND for a connector or queue pair that
// is
//           closed, moved from or of another session; transport failures.
// Source:   NDK_FN_CREATE_CONNECTOR, _CONNECT, _COMPLETE_CONNECT, _ACCEPT, _REJECT, _GET_CONNECTION_DATA, _DISCONNECT;
//           NDK_FN_DISCONNECT_EVENT_CALLBACK.
class Connector {
 public:
  // Creates a connector, connects, keeps the peer's answer for GetConnectionData, and completes. The queue pair is in
  // state kInit. Errors: those of the steps.
  static absl::StatusOr<Connector> Establish(const QueuePair& pair, const ListenerAddress& peer,
                                             const ConnectOptions& options = {});
  // The first step of the active side. Errors: QUOTA_CONNECTORS, QUOTA_HEAP_BYTES, DEVICE_NOT_CAPABLE.
  static absl::StatusOr<Connector> Create(const Client& client);

  Connector(Connector&&) noexcept = default;
  Connector& operator=(Connector&&) noexcept = default;

  // Id of the connector; 0 for one that is closed or moved from.
  ConnectorId id() const;

  // The second step: returns when the peer has accepted. After CONNECTION_REFUSED, CONNECTION_TIMED_OUT,
  // HOST_UNREACHABLE, NETWORK_UNREACHABLE and what is refused at once the same connector and queue pair may try again.
  // Further errors: CONNECTION_ACTIVE, QP_NOT_CONNECTABLE, PRIVATE_DATA_TOO_LONG, ADDRESS_INVALID, ADDRESS_IN_USE,
  // CONNECTION_EXISTS, PORTS_EXHAUSTED, ADDRESS_NOT_PERMITTED, NAME_NOT_FOUND, CONNECTION_CANCELLED.
  absl::Status Connect(const QueuePair& pair, const ListenerAddress& peer, const ConnectOptions& options = {});
  // The third: the queue pair sends. Errors, after which the connector is of no use: CONNECTION_ABORTED,
  // CONNECTION_TIMED_OUT, CONNECTION_CANCELLED.
  absl::Status CompleteConnect();

  // Accepts the request, and returns when the peer has completed the connection: the queue pair sends. Errors: those of
  // Connect, without those of addresses and names; CONNECTION_ABORTED, CONNECTION_REFUSED by the peer's Reject,
  // CONNECTION_TIMED_OUT, CONNECTION_CANCELLED.
  absl::Status Accept(const QueuePair& pair, const AcceptOptions& options = {});
  // Rejects the request, or, in place of CompleteConnect, the peer's answer. The peer may read the data, of which there
  // are at most max_callee_data bytes, by the active side max_caller_data. Errors: PRIVATE_DATA_TOO_LONG,
  // CONNECTION_ABORTED.
  absl::Status Reject(std::string_view private_data = {});

  // On the passive side until Accept. On the active side from the end of Connect until CompleteConnect, also when the
  // peer has rejected with data; after Establish always.
  absl::StatusOr<ConnectionData> GetConnectionData() const;
  // On the active side from a Connect that went well.
  absl::StatusOr<ConnectorAddresses> GetAddresses() const;

  // Ends the connection when the peer disconnects too and no transfer is in progress; completes every request of the
  // queue pair with kCancelled. Errors: CONNECTION_TIMED_OUT, and the connection is gone all the same.
  absl::Status Disconnect();
  // Waits until the peer has disconnected or the connection broke. False on timeout. Errors: SESSION_ENDING, or a
  // transport failure, when that will not be told.
  absl::StatusOr<bool> WaitForDisconnect(std::chrono::milliseconds wait_max);

  // Does what the destructor does and returns the outcome, within ClientOptions::call_deadline.
  absl::Status Close();

 private:
  friend class Listener;
  struct Open;

  explicit Connector(std::shared_ptr<Open> open) : open_(std::move(open)) {}
  static absl::StatusOr<Connector> CreateOn(const std::shared_ptr<Connection>& connection);
  // Takes over the connector with this id of the session.
  static Connector Adopt(std::shared_ptr<Connection> connection, ConnectorId id);
  // Ok if both are open and of one session.
  absl::Status CheckPair(const QueuePair& pair) const;

  // Null when moved from or closed.
  std::shared_ptr<Open> open_;
};

// A source address for several connections: ConnectOptions::shared_endpoint.
//
// Lifetime: keeps the session. The destructor closes within ClientOptions::release_deadline; the daemon keeps the
//           address until the last connector over it is closed. A moved-from endpoint is closed and may be destroyed or
//           assigned.
// Threads:  const methods are safe from several threads.
// Errors:   ADDRESS_INVALID, ADDRESS_IN_USE, PORTS_EXHAUSTED, ADDRESS_NOT_PERMITTED, QUOTA_CONNECTORS,
//           QUOTA_HEAP_BYTES, DEVICE_NOT_CAPABLE; transport failures.
// Source:   NDK_FN_CREATE_SHARED_ENDPOINT.
class SharedEndpoint {
 public:
  // `local` is an address of the adapter, by default its first. Port 0: a free one.
  static absl::StatusOr<SharedEndpoint> Create(const Client& client, const NetworkAddress& local = {});

  SharedEndpoint(SharedEndpoint&&) noexcept = default;
  SharedEndpoint& operator=(SharedEndpoint&&) noexcept = default;

  // Id of the endpoint; 0 when closed or moved from, as is the address.
  SharedEndpointId id() const;
  NetworkAddress local() const;

  // Does what the destructor does and returns the outcome, within ClientOptions::call_deadline. Errors:
  // OBJECT_NOT_FOUND when closed or moved from.
  absl::Status Close();

 private:
  struct Open;

  explicit SharedEndpoint(std::shared_ptr<Open> open) : open_(std::move(open)) {}

  // Null when moved from or closed.
  std::shared_ptr<Open> open_;
};

}  // namespace rnicd::inline client
