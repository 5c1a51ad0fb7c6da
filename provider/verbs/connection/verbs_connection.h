#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "provider/engine/engine_queue_pair.h"
#include "provider/verbs/card/verbs_context.h"
#include "provider/verbs/connection/cm_channel.h"
#include "provider/verbs/queue/verbs_endpoint.h"

namespace rnicd::provider {

// One end of a connection: an id of the connection manager, and the queue pair whose states follow it. The kernel does
// not move a queue pair that the id does not have, so that is done here, with the provider's own timers.
// Lifetime: shared by its DeviceConnector and, during an event, by the channel's thread.
// Threads:  calls come one at a time, and events on the channel's thread, from which all upcalls are made.
class VerbsConnection final : public CmSink, public std::enable_shared_from_this<VerbsConnection> {
 public:
  VerbsConnection(std::shared_ptr<CmChannel> channel, std::shared_ptr<VerbsContext> context)
      : channel_(std::move(channel)), context_(std::move(context)) {}

  void SetListener(std::weak_ptr<ConnectorListener> listener);
  // Begins with a peer's request, on the channel's thread. False when that has reached another card.
  bool TakeRequest(std::shared_ptr<CmId> id);
  ConnectionPath path() const;

  // For the connector.
  absl::Status Connect(DeviceQueuePair& pair, const ConnectionPath& path, const ConnectionOffer& offer);
  absl::Status CompleteConnect(const ConnectionOffer& offer);
  absl::Status Accept(DeviceQueuePair& pair, const ConnectionOffer& offer);
  absl::Status Reject(std::string_view private_data);
  absl::Status Disconnect();
  void Close();

  void OnEvent(CmEvent event) override;

 private:
  enum class State : uint8_t {
    kIdle,
    // Address, then route.
    kResolving,
    // The request is sent.
    kConnecting,
    // The peer has accepted.
    kAnswered,
    // The queue pair follows the route; then the peer hears of it.
    kCompleting,
    // A request that is not decided.
    kRequested,
    kAccepting,
    // The peer has given up what is not decided.
    kWithdrawn,
    kEstablished,
    // The peer has disconnected.
    kPeerGone,
    kDisconnecting,
    kEnded,
  };
  // The queue pair.
  struct End {
    std::shared_ptr<QueuePairEngine> engine;
    VerbsEndpoint* endpoint = nullptr;
  };

  bool Move(State from, State to);
  // Errors: CONNECTOR_STATE; CONNECTION_ABORTED where the peer has withdrawn.
  absl::Status Begin(State from, State to);
  absl::Status Bind(rdma_cm_id* id, const ConnectionPath& path);
  bool IsOnCard(rdma_cm_id* id) const;
  void SetEnd(DeviceQueuePair& pair);
  // Destroys the id.
  void Forget(State next);
  rdma_conn_param Parameters(const ConnectionOffer& offer) const RNICD_REQUIRES(mutex_);
  absl::Status FollowRoute(const ConnectionOffer& offer);
  // On iWARP the kernel moves the queue pair.
  bool is_iwarp() const { return context_->device().iwarp() != nullptr; }
  absl::Status FollowKernel();
  // Results: errno.
  int SendRequest() RNICD_REQUIRES(mutex_);
  int TakeBackAnswer(std::string_view private_data) RNICD_REQUIRES(mutex_);
  bool FindPeer(const QueuePairRoute& route, std::string& address) const RNICD_REQUIRES(mutex_);
  void Later(void (VerbsConnection::*step)(const absl::Status&), const absl::Status& status);

  // On the channel's thread.
  void OnResolved(rdma_cm_event_type type);
  void EndConnecting(const absl::Status& status) { OnEnd({}, status); }
  // This side can go on, or not; in the second case the peer hears of it.
  void EndCompleting(const absl::Status& status);
  void EndAccepting(const absl::Status& status);
  void EndDisconnecting(const absl::Status& status);
  void Establish();
  static State EndOf(State state);
  // `status`: why Connect fails.
  void OnEnd(const CmEvent& event, const absl::Status& status);
  void Fail(const absl::Status& status, std::string_view private_data = {});
  void LoseEnd();
  void Report(const std::function<void(ConnectorListener&)>& upcall);

  const std::shared_ptr<CmChannel> channel_;
  const std::shared_ptr<VerbsContext> context_;
  mutable Mutex mutex_;
  State state_ RNICD_GUARDED_BY(mutex_) = State::kIdle;
  std::weak_ptr<ConnectorListener> listener_ RNICD_GUARDED_BY(mutex_);
  std::shared_ptr<CmId> id_ RNICD_GUARDED_BY(mutex_);
  ConnectionPath path_ RNICD_GUARDED_BY(mutex_);
  // What the request says, until it is sent.
  ConnectionOffer offer_ RNICD_GUARDED_BY(mutex_);
  End end_ RNICD_GUARDED_BY(mutex_);
  std::string peer_address_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
