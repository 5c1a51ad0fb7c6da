#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "provider/api/connection.h"
#include "provider/engine/engine_queue_pair.h"
#include "provider/soft/net/soft_message.h"

namespace rnicd::provider {

class SoftSwitch;

// One end of a connection. Everything that happens to it comes as a message, what it causes itself included, so that
// the listener is called on the worker only.
// Lifetime: shared by its owner's handle and a delivery in progress.
// Threads: safe. Messages are sent under the lock, in the order of the states; the listener and the queue pair are
// called
//          without it.
class SoftConnector final : public std::enable_shared_from_this<SoftConnector> {
 public:
  // An active end, of a card with that address.
  SoftConnector(SoftSwitch& net, const IpAddress& host, std::weak_ptr<ConnectorListener> listener);
  // The passive end that a request asks for.
  SoftConnector(SoftSwitch& net, const SoftMessage& request);

  // For the owner: see DeviceConnector. Close is its destructor.
  absl::Status Connect(DeviceQueuePair& pair, const ConnectionPath& path, const ConnectionOffer& offer);
  absl::Status CompleteConnect(const ConnectionOffer& offer);
  absl::Status Accept(DeviceQueuePair& pair, const ConnectionOffer& offer);
  absl::Status Reject(std::string_view private_data);
  absl::Status Disconnect();
  void Close();

  // For the switch.
  void SetListener(std::weak_ptr<ConnectorListener> listener);
  // Ignored when it comes by another link than the peer's.
  void Receive(const SoftMessage& message);
  // The connection is over if it has that link.
  void LoseLink(uint64_t link);

 private:
  enum class State : uint8_t {
    kIdle,
    // Active: has asked; has the peer's answer; the peer has withdrawn its answer; completes.
    kConnecting,
    kAnswered,
    kWithdrawn,
    kCompleting,
    // Passive: was asked; has answered.
    kRequested,
    kAccepting,
    kConnected,
    // Only this end has disconnected; only the peer has.
    kDisconnecting,
    kDisconnected,
    kEnded,
  };

  // The state after the peer's kEnd.
  static State AfterEnd(State state);
  void OnAnswer(const SoftMessage& message);
  void OnReady();
  void OnEstablished();
  void OnEnd(const SoftMessage& message);
  // Connects the queue pair, still in that state. Errors: CONNECTION_ABORTED, also where the peer's is gone;
  // QP_NOT_CONNECTABLE.
  absl::Status ConnectPair(State state);
  // For the peer, with the queue pair and an offer padded to `bytes` of private data.
  SoftMessage Offering(SoftMessage::Kind kind, const ConnectionOffer& offer, size_t bytes) const RNICD_REQUIRES(mutex_);
  void SendEnd(ErrorReason reason, std::string private_data = {}) RNICD_REQUIRES(mutex_);
  void FailLater(ErrorReason reason) RNICD_REQUIRES(mutex_);

  SoftSwitch& net_;
  Mutex mutex_;
  State state_ RNICD_GUARDED_BY(mutex_) = State::kIdle;
  // 0 before the first Connect; each has its own, so that nothing of the one before reaches it.
  uint64_t number_ RNICD_GUARDED_BY(mutex_) = 0;
  // That to the peer; 0: the peer is of this daemon.
  uint64_t link_ RNICD_GUARDED_BY(mutex_) = 0;
  NetworkAddress local_ RNICD_GUARDED_BY(mutex_);
  NetworkAddress peer_ RNICD_GUARDED_BY(mutex_);
  std::shared_ptr<QueuePairEngine> pair_ RNICD_GUARDED_BY(mutex_);
  std::string peer_pair_ RNICD_GUARDED_BY(mutex_);
  uint32_t read_limit_ RNICD_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<ConnectorListener> listener_ RNICD_GUARDED_BY(mutex_);
};

// The owner's handle of a connector.
class SoftConnectorHandle final : public DeviceConnector {
 public:
  explicit SoftConnectorHandle(std::shared_ptr<SoftConnector> connector) : connector_(std::move(connector)) {}
  ~SoftConnectorHandle() override { connector_->Close(); }
  SoftConnectorHandle(const SoftConnectorHandle&) = delete;
  SoftConnectorHandle& operator=(const SoftConnectorHandle&) = delete;

  absl::Status Connect(DeviceQueuePair& pair, const ConnectionPath& path, const ConnectionOffer& offer) override {
    return connector_->Connect(pair, path, offer);
  }
  absl::Status CompleteConnect(const ConnectionOffer& offer) override { return connector_->CompleteConnect(offer); }
  absl::Status Accept(DeviceQueuePair& pair, const ConnectionOffer& offer) override {
    return connector_->Accept(pair, offer);
  }
  absl::Status Reject(std::string_view private_data) override { return connector_->Reject(private_data); }
  absl::Status Disconnect() override { return connector_->Disconnect(); }

 private:
  const std::shared_ptr<SoftConnector> connector_;
};

}  // namespace rnicd::provider
