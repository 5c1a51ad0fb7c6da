#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/ndk/network_address.h"

namespace rnicd::provider {

class DeviceQueuePair;

// What one side of a connection tells the other. Core has made the limits effective: neither is above the adapter's or,
// where the peer's are known, above what the peer offers in the other direction.
struct ConnectionOffer {
  // Reads of the peer that this side executes at a time.
  uint32_t inbound_read_limit = 0;
  // Reads of this side that the peer executes at a time; 0: this side posts none.
  uint32_t outbound_read_limit = 0;
  // At most max_caller_data or max_callee_data bytes. Those that arrive may be longer than those that were sent: a card
  // may pad them with zeros.
  std::string private_data;
};

// Events of one connector.
// Lifetime: the device keeps it weakly, so events that nobody waits for any more are dropped.
// Threads:  called on any thread, one call at a time for a connector, and without a lock of the device. Must be quick;
//           may call the connector and destroy it.
class ConnectorListener {
 public:
  virtual ~ConnectorListener() = default;
  // Answers Connect: the peer has accepted, and offers this.
  virtual void OnAccepted(const ConnectionOffer& offer) = 0;
  // Answers CompleteConnect or Accept: the connection is made, and the queue pair sends.
  virtual void OnEstablished() = 0;
  // Connect, CompleteConnect or Accept has failed, or the peer has withdrawn a request that was not decided yet;
  // nothing follows. Errors: CONNECTION_REFUSED, with the private data of a rejection that has some;
  // CONNECTION_ABORTED, CONNECTION_TIMED_OUT, HOST_UNREACHABLE, NETWORK_UNREACHABLE, those of DeviceQueuePair::Connect.
  virtual void OnFailed(const absl::Status& status, std::string_view private_data) = 0;
  // The peer has disconnected or closed its connector, or the connection broke; also the answer to Disconnect. Once.
  virtual void OnDisconnected() = 0;
};

// Source and destination of a connection.
struct ConnectionPath {
  // An address and port of the adapter; the port is not 0, and core has seen to it that nothing else in this daemon has
  // it, except other connections of the same shared endpoint.
  NetworkAddress local;
  NetworkAddress peer;
  // Other connections may use the same local port.
  bool shares_port = false;
};

// One end of a connection, while it is made and until it is closed.
// Lifetime: outlived by its adapter; the queue pair that it was given outlives it. The destructor ends the connection:
//           an undecided request is rejected, a peer hears of the end. It does not flush the queue pair.
// Threads:  one call at a time; never blocks. Core calls in NDK's order only.
// Source:   rdma_create_id(3), NDK_CONNECTOR_DISPATCH.
class DeviceConnector {
 public:
  virtual ~DeviceConnector() = default;
  // Asks the peer for a connection to this queue pair; OnAccepted or OnFailed follows. Errors, after which Connect may
  // be called again: ADDRESS_IN_USE, ADDRESS_INVALID, DEVICE_OUT_OF_RESOURCES, DEVICE_REMOVED, DEVICE_FAILED.
  virtual absl::Status Connect(DeviceQueuePair& pair, const ConnectionPath& path, const ConnectionOffer& offer) = 0;
  // After OnAccepted. `offer` has the effective limits and no data. OnEstablished or OnFailed follows.
  virtual absl::Status CompleteConnect(const ConnectionOffer& offer) = 0;
  // Accepts the request that the connector came with. `offer` has the effective limits. OnEstablished or OnFailed
  // follows.
  virtual absl::Status Accept(DeviceQueuePair& pair, const ConnectionOffer& offer) = 0;
  // Rejects a request, or, after OnAccepted, the peer's answer. Nothing follows. Errors: CONNECTION_ABORTED.
  virtual absl::Status Reject(std::string_view private_data) = 0;
  // Tells the peer that this side has disconnected, or answers the peer that has. OnDisconnected follows as soon as
  // both sides have, unless it came before. The queue pair has been flushed.
  virtual absl::Status Disconnect() = 0;
};

// A request for a connection, as it reaches a listener.
struct ConnectionRequest {
  std::unique_ptr<DeviceConnector> connector;
  NetworkAddress local;
  NetworkAddress peer;
  ConnectionOffer offer;
};

// Requests of one listener. Lifetime, threads: as ConnectorListener.
class RequestListener {
 public:
  virtual ~RequestListener() = default;
  // Takes the request, and returns who hears of its connector; null rejects it.
  virtual std::shared_ptr<ConnectorListener> OnRequest(ConnectionRequest request) = 0;
};

// An address and port at which the card takes requests. The destructor ends that: requests that come later are refused,
// those taken live on.
// Source: rdma_listen(3).
class DeviceListener {
 public:
  virtual ~DeviceListener() = default;
};

}  // namespace rnicd::provider
