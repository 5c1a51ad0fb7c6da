// Calls, and the states of the queue pair.

#include "provider/verbs/connection/verbs_connection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "provider/verbs/card/verbs_status.h"
#include "provider/verbs/connection/cm_status.h"
#include "provider/verbs/queue/qp_address.h"

namespace rnicd::provider {
namespace {

// The queue pair of a peer that leaves its timers to the connection manager retries as those of this provider do.
constexpr uint8_t kPeerRetries = 6;
constexpr uint8_t kPeerReceiverRetries = 7;

uint8_t ToByte(uint32_t limit) { return static_cast<uint8_t>(std::min(limit, uint32_t{UINT8_MAX})); }

}  // namespace

void VerbsConnection::SetListener(std::weak_ptr<ConnectorListener> listener) {
  MutexLock lock(mutex_);
  listener_ = std::move(listener);
}

bool VerbsConnection::TakeRequest(std::shared_ptr<CmId> id) {
  id->SetSink(weak_from_this());
  const bool on_card = IsOnCard(id->raw());
  MutexLock lock(mutex_);
  path_ = {.local = channel_->cm().LocalAddress(id->raw()), .peer = channel_->cm().PeerAddress(id->raw())};
  id_ = std::move(id);
  state_ = State::kRequested;
  return on_card;
}

ConnectionPath VerbsConnection::path() const {
  MutexLock lock(mutex_);
  return path_;
}

bool VerbsConnection::Move(State from, State to) {
  MutexLock lock(mutex_);
  const bool moves = state_ == from;
  state_ = moves ? to : state_;
  return moves;
}

absl::Status VerbsConnection::Begin(State from, State to) {
  MutexLock lock(mutex_);
  if (state_ != from) {
    return MakeError(state_ == State::kWithdrawn ? ErrorReason::CONNECTION_ABORTED : ErrorReason::CONNECTOR_STATE);
  }
  state_ = to;
  return absl::OkStatus();
}

void VerbsConnection::Later(void (VerbsConnection::*step)(const absl::Status&), const absl::Status& status) {
  channel_->Post([weak = weak_from_this(), step, status] {
    if (const std::shared_ptr<VerbsConnection> self = weak.lock(); self != nullptr) {
      (*self.*step)(status);
    }
  });
}

// The kernel takes a queue pair's number unchecked, so it must be one of the card that the id is on.
bool VerbsConnection::IsOnCard(rdma_cm_id* id) const {
  const VerbsDevice& device = context_->device();
  return !device.removed() && channel_->cm().CardOf(id) == CmCard{.card = device.card().name, .port = device.port()};
}

absl::Status VerbsConnection::Bind(rdma_cm_id* id, const ConnectionPath& path) {
  int error = path.shares_port ? channel_->cm().ShareAddress(id) : 0;
  if (error == 0) {
    error = channel_->cm().Bind(id, path.local);
  }
  if (error != 0) {
    return BindStatus(error, "rdma_bind_addr");
  }
  return IsOnCard(id) ? absl::OkStatus() : MakeError(ErrorReason::ADDRESS_INVALID, "address");
}

void VerbsConnection::SetEnd(DeviceQueuePair& pair) {
  auto& owned = static_cast<EngineQueuePair&>(pair);
  MutexLock lock(mutex_);
  end_ = {.engine = owned.engine(), .endpoint = &static_cast<VerbsEndpoint&>(owned.card())};
  channel_->ends().Add(path_.local, path_.peer, end_.engine->address());
}

rdma_conn_param VerbsConnection::Parameters(const ConnectionOffer& offer) const {
  rdma_conn_param parameters = {};
  parameters.private_data = offer.private_data.data();
  parameters.private_data_len = static_cast<uint8_t>(offer.private_data.size());
  parameters.responder_resources = ToByte(offer.inbound_read_limit);
  parameters.initiator_depth = ToByte(offer.outbound_read_limit);
  parameters.retry_count = kPeerRetries;
  parameters.rnr_retry_count = kPeerReceiverRetries;
  parameters.qp_num = end_.endpoint->qp_address().qpn;
  return parameters;
}

absl::Status VerbsConnection::Connect(DeviceQueuePair& pair, const ConnectionPath& path, const ConnectionOffer& offer) {
  RNICD_RETURN_IF_ERROR(Begin(State::kIdle, State::kIdle));
  // That of an earlier attempt.
  Forget(State::kIdle);
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<CmId> id, channel_->CreateId(weak_from_this()));
  RNICD_RETURN_IF_ERROR(Bind(id->raw(), path));
  {
    MutexLock lock(mutex_);
    path_ = path;
    offer_ = offer;
    id_ = id;
    state_ = State::kResolving;
  }
  SetEnd(pair);
  if (const int error = channel_->cm().ResolveAddress(id->raw(), path.peer); error != 0) {
    Forget(State::kIdle);
    return CmStatus(error, "rdma_resolve_addr");
  }
  return absl::OkStatus();
}

absl::Status VerbsConnection::CompleteConnect(const ConnectionOffer& offer) {
  absl::Status begun = Begin(State::kAnswered, State::kCompleting);
  // Looked for second, because the peer may withdraw at any moment.
  if (Move(State::kWithdrawn, State::kCompleting)) {
    Later(&VerbsConnection::EndCompleting, MakeError(ErrorReason::CONNECTION_ABORTED));
    return absl::OkStatus();
  }
  if (!begun.ok()) {
    return begun;
  }
  Later(&VerbsConnection::EndCompleting, FollowRoute(offer));
  return absl::OkStatus();
}

absl::Status VerbsConnection::Accept(DeviceQueuePair& pair, const ConnectionOffer& offer) {
  RNICD_RETURN_IF_ERROR(Begin(State::kRequested, State::kAccepting));
  SetEnd(pair);
  absl::Status status = FollowRoute(offer);
  if (status.ok()) {
    MutexLock lock(mutex_);
    rdma_conn_param parameters = Parameters(offer);
    const int error = channel_->cm().Accept(id_->raw(), parameters);
    status = error == 0 ? absl::OkStatus() : CmStatus(error, "rdma_accept");
  }
  if (!status.ok()) {
    Later(&VerbsConnection::EndAccepting, status);
  }
  return absl::OkStatus();
}

// It does not say which queue pair the peer is, so a name serves.
absl::Status VerbsConnection::FollowKernel() {
  MutexLock lock(mutex_);
  if (channel_->ends().Find(path_.peer, path_.local) == end_.engine->address()) {
    return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
  }
  QpAddress peer{.qpn = path_.peer.port, .mtu = IBV_MTU_1024};
  std::ranges::copy(path_.peer.ip.bytes(), peer.gid.raw);
  peer_address_ = FormatQpAddress(peer);
  return end_.endpoint->Follow(peer_address_);
}

absl::Status VerbsConnection::FollowRoute(const ConnectionOffer& offer) {
  if (is_iwarp()) {
    return FollowKernel();
  }
  QueuePairRoute route;
  route.receiving.qp_state = IBV_QPS_RTR;
  route.sending.qp_state = IBV_QPS_RTS;
  VerbsEndpoint* endpoint = nullptr;
  std::string peer;
  bool is_local = false;
  {
    MutexLock lock(mutex_);
    int error = channel_->cm().InitQpAttributes(id_->raw(), route.receiving);
    error = error == 0 ? channel_->cm().InitQpAttributes(id_->raw(), route.sending) : error;
    if (error != 0) {
      return CmStatus(error, "rdma_init_qp_attr");
    }
    is_local = FindPeer(route, peer_address_);
    peer = peer_address_;
    endpoint = end_.endpoint;
    // The kernel would drop the answer.
    if (peer == end_.engine->address()) {
      return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
    }
  }
  // The kernel passes on what each side says, and nobody takes the smaller number.
  route.receiving.max_dest_rd_atomic = ToByte(offer.inbound_read_limit);
  route.sending.max_rd_atomic = ToByte(offer.outbound_read_limit);
  // Without the lock, because the kernel may look for the peer's MAC address.
  return endpoint->Follow(route, peer, is_local);
}

// True for a queue pair of this daemon. The peer's addresses are what it says, so its number must be right, too.
bool VerbsConnection::FindPeer(const QueuePairRoute& route, std::string& address) const {
  address = channel_->ends().Find(path_.peer, path_.local);
  const std::optional<QpAddress> parsed = ParseQpAddress(address);
  if (parsed.has_value() && parsed->qpn == route.receiving.dest_qp_num) {
    return true;
  }
  address = FormatQpAddress({.gid = route.receiving.ah_attr.grh.dgid,
                             .qpn = route.receiving.dest_qp_num,
                             .psn = route.receiving.rq_psn,
                             .mtu = route.receiving.path_mtu});
  return false;
}

// On iWARP the kernel knows no answer that could be taken back: for it the connection is made.
int VerbsConnection::TakeBackAnswer(std::string_view private_data) {
  return is_iwarp() ? channel_->cm().Disconnect(id_->raw()) : channel_->cm().Reject(id_->raw(), private_data);
}

absl::Status VerbsConnection::Reject(std::string_view private_data) {
  const bool answered = Move(State::kAnswered, State::kEnded);
  if (!answered) {
    RNICD_RETURN_IF_ERROR(Begin(State::kRequested, State::kEnded));
  }
  MutexLock lock(mutex_);
  const int error = answered ? TakeBackAnswer(private_data) : channel_->cm().Reject(id_->raw(), private_data);
  return error == 0 ? absl::OkStatus() : CmStatus(error, "rdma_reject");
}

// One that cannot tell its peer is disconnected all the same.
absl::Status VerbsConnection::Disconnect() {
  absl::Status begun = Begin(State::kEstablished, State::kDisconnecting);
  // Looked for second, because the peer may disconnect at any moment.
  const bool answers = !begun.ok() && Move(State::kPeerGone, State::kEnded);
  if (!begun.ok() && !answers) {
    return begun;
  }
  MutexLock lock(mutex_);
  if (channel_->cm().Disconnect(id_->raw()) != 0 && !answers) {
    Later(&VerbsConnection::EndDisconnecting, absl::OkStatus());
  }
  return absl::OkStatus();
}

void VerbsConnection::Close() {
  SetListener({});
  Forget(State::kEnded);
}

// The id is destroyed without the lock: that waits for the thread that handles its events, and on iWARP for the answer
// to its request.
void VerbsConnection::Forget(State next) {
  std::shared_ptr<CmId> id;
  End end;
  bool waits = false;
  {
    MutexLock lock(mutex_);
    waits = is_iwarp() && state_ == State::kConnecting;
    state_ = next;
    id = std::exchange(id_, nullptr);
    end = std::exchange(end_, {});
    if (end.engine != nullptr) {
      channel_->ends().Remove(path_.local, path_.peer, end.engine->address());
    }
  }
  if (waits) {
    channel_->RunApart([last = std::move(id)] {});
  }
}

}  // namespace rnicd::provider
