// The owner's half of a queue pair: set-up, posting, teardown; and notifications from its peer in the same daemon.

#include "provider/verbs/verbs_endpoint.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status.h"
#include "provider/verbs/adapter_limits.h"
#include "provider/verbs/verbs_status.h"
#include "provider/verbs/verbs_window.h"

namespace rnicd::provider {
namespace {

// Number of retransmissions of a packet before the peer counts as dead; some cards treat 7 as "unlimited".
// Receiver-not-ready retries are unlimited, which 7 means to every card.
constexpr uint8_t kRetries = 6;
constexpr uint8_t kReceiverRetries = 7;
// Code 12: a sender that found no receive retries after 0.64 ms.
constexpr uint8_t kReceiverNotReadyTimer = 12;
constexpr uint8_t kHopLimit = 64;
constexpr uint32_t kPsnMask = 0xFFFFFF;

// True when a failed change of state is due to the peer's address and not to this card.
bool IsAboutPeer(int error) {
  return error == EINVAL || error == ENETUNREACH || error == EHOSTUNREACH || error == ETIMEDOUT || error == ENODATA ||
         error == EADDRNOTAVAIL;
}

ibv_ah_attr RouteTo(const QpAddress& peer, uint8_t port, uint8_t gid_index, bool ethernet) {
  ibv_ah_attr route = {};
  route.port_num = port;
  route.dlid = peer.lid;
  route.is_global = ethernet ? 1 : 0;
  route.grh = {.dgid = peer.gid, .flow_label = 0, .sgid_index = gid_index, .hop_limit = kHopLimit, .traffic_class = 0};
  return route;
}

}  // namespace

// --- setting up ---

absl::StatusOr<std::shared_ptr<VerbsEndpoint>> VerbsEndpoint::Create(std::shared_ptr<VerbsDomain> domain,
                                                                     const QueuePairLimits& limits,
                                                                     QueuePairListener& listener) {
  std::shared_ptr<VerbsEndpoint> endpoint(new VerbsEndpoint(std::move(domain), limits, listener));
  RNICD_RETURN_IF_ERROR(endpoint->Open());
  endpoint->node().fabric.Add(endpoint->address_text_, endpoint);
  return endpoint;
}

VerbsEndpoint::~VerbsEndpoint() { DestroyQueuePair(); }

absl::Status VerbsEndpoint::Open() {
  VerbsContext& context = domain_->context();
  RNICD_ASSIGN_OR_RETURN(const PortAddress port, context.device().CurrentAddress(node(), context.raw()));
  RNICD_RETURN_IF_ERROR(MakeQueuePair());
  RNICD_RETURN_IF_ERROR(EnterInit());
  ethernet_ = port.ethernet;
  address_ = {.gid = port.gid,
              .qpn = qp_->qp_num,
              .psn = static_cast<uint32_t>(node().random.Next()) & kPsnMask,
              .lid = port.lid,
              .mtu = port.mtu,
              .origin = node().origin};
  address_text_ = FormatQpAddress(address_);
  MutexLock lock(queues_mutex_);
  return domain_->context().ListenTo(cq_, weak_from_this());
}

// One completion queue for both queues, with room for all their completions: it never overruns. Core implements the NDK
// completion queue.
absl::Status VerbsEndpoint::MakeQueuePair() {
  const uint32_t sends = limits_.initiator_depth + kExtraSendRequests;
  const uint32_t receives = std::max(limits_.receive_depth, 1U);
  ibv_cq* cq = nullptr;
  RNICD_ASSIGN_OR_RETURN(cq, domain_->context().MakeQueue(sends + receives));
  ibv_qp_init_attr attributes = {};
  attributes.send_cq = cq;
  attributes.recv_cq = cq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = sends,
                    .max_recv_wr = receives,
                    .max_send_sge = MaxSendEntries(),
                    .max_recv_sge = std::max(limits_.receive_entries, 1U),
                    .max_inline_data = limits_.inline_bytes};
  MutexLock lock(queues_mutex_);
  cq_ = cq;
  qp_ = api().CreateQp(domain_->pd(), attributes);
  return qp_ != nullptr ? absl::OkStatus() : VerbStatus(errno, "ibv_create_qp");
}

absl::Status VerbsEndpoint::EnterInit() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = domain_->device().port();
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  const int error = api().ModifyQp(qp_, attributes, kMask);
  return error == 0 ? absl::OkStatus() : VerbStatus(error, "ibv_modify_qp");
}

absl::Status VerbsEndpoint::EnterReady(const QpAddress& peer) {
  VerbsContext& context = domain_->context();
  const VerbsDevice& device = context.device();
  RNICD_ASSIGN_OR_RETURN(const uint8_t gid_index, device.FindGid(node(), context.raw(), address_.gid));
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = RouteTo(peer, device.port(), gid_index, ethernet_);
  attributes.path_mtu = std::min(address_.mtu, peer.mtu);
  attributes.dest_qp_num = peer.qpn;
  attributes.rq_psn = peer.psn;
  attributes.max_dest_rd_atomic = static_cast<uint8_t>(std::min(device.info().max_inbound_read_limit, 255U));
  attributes.min_rnr_timer = kReceiverNotReadyTimer;
  constexpr int kReceiveMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (const int error = api().ModifyQp(qp_, attributes, kReceiveMask); error != 0) {
    return IsAboutPeer(error) ? MakeError(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address")
                              : VerbStatus(error, "ibv_modify_qp");
  }
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = node().options.ack_timeout;
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kReceiverRetries;
  attributes.sq_psn = address_.psn;
  attributes.max_rd_atomic = static_cast<uint8_t>(std::min(device.info().max_outbound_read_limit, 255U));
  constexpr int kSendMask =
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  if (const int error = api().ModifyQp(qp_, attributes, kSendMask); error != 0) {
    Fail();
    return VerbStatus(error, "ibv_modify_qp");
  }
  return absl::OkStatus();
}

QueuePairState VerbsEndpoint::state() const {
  MutexLock lock(mutex_);
  return state_;
}

absl::Status VerbsEndpoint::BeginConnecting() {
  MutexLock lock(mutex_);
  if (state_ != QueuePairState::kInit || connecting_) {
    return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
  }
  connecting_ = true;
  return absl::OkStatus();
}

absl::Status VerbsEndpoint::Connect(std::string_view peer_address) {
  RNICD_RETURN_IF_ERROR(BeginConnecting());
  const std::optional<QpAddress> parsed = ParseQpAddress(peer_address);
  const bool is_local = parsed.has_value() && parsed->origin == node().origin;
  // The same address may be spelled in more than one way.
  const std::string peer_text = parsed.has_value() ? FormatQpAddress(*parsed) : "";
  const std::shared_ptr<VerbsEndpoint> peer = is_local ? node().fabric.Find(peer_text) : nullptr;
  const absl::Status ready = parsed.has_value() && is_local == (peer != nullptr)
                                 ? EnterReady(*parsed)
                                 : MakeError(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address");
  {
    MutexLock lock(mutex_);
    connecting_ = false;
    changed_.NotifyAll();
    if (state_ != QueuePairState::kInit) {
      return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");  // Flushed meanwhile.
    }
    RNICD_RETURN_IF_ERROR(ready);
    state_ = QueuePairState::kReadyToSend;
    peer_address_ = peer_text;
    peer_ = peer;
    peer_is_local_ = is_local;
    peer_is_rnicd_ = parsed->origin != 0;
    awaiting_peer_ = is_local;
    last_probe_ = std::chrono::steady_clock::now();
  }
  NotifyEarlyVisitors();
  if (is_local) {
    CheckPeerReadiness(peer);
  }
  Run();
  return absl::OkStatus();
}

// The visitors' requests may have waited for Connect. Those of visitors that are not the peer fail.
void VerbsEndpoint::NotifyEarlyVisitors() {
  std::map<std::string, std::weak_ptr<VerbsEndpoint>> early_visitors;
  {
    MutexLock lock(mutex_);
    early_visitors.swap(early_visitors_);
  }
  for (const auto& [address, weak] : early_visitors) {
    if (const std::shared_ptr<VerbsEndpoint> visitor = weak.lock(); visitor != nullptr) {
      visitor->OnPeerReady(address_text_);
    }
  }
}

void VerbsEndpoint::CheckPeerReadiness(const std::shared_ptr<VerbsEndpoint>& peer) {
  switch (peer->Expect(shared_from_this())) {
    case PeerReadiness::kReady:
      OnPeerReady(peer->address_text_);
      break;
    case PeerReadiness::kNotYet:
      break;
    case PeerReadiness::kFailed:
      LoseConnection(peer->address_text_, /*fatal=*/false);
      break;
  }
}

// --- posting ---

absl::Status VerbsEndpoint::CheckRoom(bool receive) const {
  if (shut_) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED);
  }
  if (receive) {
    return receives_.size() < limits_.receive_depth ? absl::OkStatus() : MakeError(ErrorReason::QUEUE_FULL);
  }
  if (state_ != QueuePairState::kReadyToSend || disconnecting_) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED);
  }
  return slots_.size() < limits_.initiator_depth ? absl::OkStatus() : MakeError(ErrorReason::QUEUE_FULL);
}

// Bytes of this process may need more entries than the request had: one for each piece that cannot be mapped together
// with its neighbours.
absl::Status VerbsEndpoint::CheckEntries(const PreparedRequest& prepared, bool receive) const {
  const size_t most = receive ? std::max(limits_.receive_entries, 1U) : MaxSendEntries();
  return prepared.payload.size() <= most ? absl::OkStatus() : MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
}

uint32_t VerbsEndpoint::MaxSendEntries() const {
  return std::max({limits_.initiator_entries, domain_->device().info().max_read_request_sge, 1U});
}

absl::StatusOr<RemoteToken> VerbsEndpoint::Enqueue(WorkRequest request) {
  const bool receive = std::holds_alternative<ReceiveWork>(request.work);
  {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(CheckRoom(receive));
  }
  // Without the lock, because Prepare may register memory. If the request is refused below, the destructor undoes that.
  RNICD_ASSIGN_OR_RETURN(PreparedRequest prepared, Prepare(domain_, std::move(request)));
  RNICD_RETURN_IF_ERROR(CheckEntries(prepared, receive));
  if (receive) {
    {
      MutexLock lock(mutex_);
      RNICD_RETURN_IF_ERROR(CheckRoom(receive));
      RNICD_RETURN_IF_ERROR(PostReceive(std::move(prepared)));
    }
    ReportReceives();
    return RemoteToken{};
  }
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckRoom(receive));
  const RemoteToken token = prepared.token();
  if (const auto* work = std::get_if<FastRegisterWork>(&prepared.request.work)) {
    static_cast<VerbsFastRegion&>(*work->region).Issue(token);
  } else if (const auto* bind = std::get_if<BindWork>(&prepared.request.work)) {
    static_cast<VerbsWindow&>(*bind->window).Issue(token);
  }
  slots_.push_back(Slot{.prepared = std::move(prepared), .serial = next_serial_++});
  return token;
}

absl::Status VerbsEndpoint::PostReceive(PreparedRequest prepared) {
  std::vector<ibv_sge> entries = TranslateReceive(*domain_, prepared);
  ibv_recv_wr request = {};
  request.wr_id = (first_receive_ + receives_.size()) | kReceiveBit;
  request.sg_list = entries.data();
  request.num_sge = static_cast<int>(entries.size());
  receives_.push_back(Receive{.prepared = std::move(prepared), .result = std::nullopt});
  if (state_ == QueuePairState::kError) {
    receives_.back().result = CancelledReceive(receives_.back().prepared);
    return absl::OkStatus();
  }
  if (const int error = api().PostRecv(qp_, request); error != 0) {
    receives_.pop_back();
    return VerbStatus(error, "ibv_post_recv");
  }
  return absl::OkStatus();
}

// --- ending ---

void VerbsEndpoint::Flush() {
  Fail();
  Run();
}

void VerbsEndpoint::Disconnect() {
  {
    MutexLock lock(mutex_);
    disconnecting_ = true;
  }
  Flush();
  MutexLock lock(mutex_);
  while (!IsQuiet()) {
    changed_.Wait(mutex_);
  }
}

void VerbsEndpoint::Shutdown() {
  node().fabric.Remove(address_text_);
  {
    MutexLock lock(mutex_);
    shut_ = true;
  }
  Disconnect();
  DestroyQueuePair();
}

bool VerbsEndpoint::IsQuiet() const {
  return !connecting_ && !running_ && !reporting_receives_ && busy_ == 0 && !probing_ && slots_.empty() &&
         receives_.empty();
}

// Windows first: a card may refuse to destroy a queue pair with a bound window, and the kernel then waits for a minute.
void VerbsEndpoint::DestroyQueuePair() {
  std::map<const Invalidatable*, Bound> bound;
  {
    MutexLock lock(mutex_);
    bound.swap(bound_);
  }
  for (const auto& [key, each] : bound) {
    if (const std::shared_ptr<Invalidatable> owner = each.owner.lock(); owner != nullptr) {
      owner->InvalidateToken(each.token, std::nullopt);
    }
  }
  MutexLock lock(queues_mutex_);
  if (qp_ != nullptr) {
    api().DestroyQp(std::exchange(qp_, nullptr));
  }
  if (cq_ != nullptr) {
    domain_->context().RemoveQueue(std::exchange(cq_, nullptr));
  }
}

// --- failing ---

void VerbsEndpoint::EndBusy() {
  MutexLock lock(mutex_);
  --busy_;
  changed_.NotifyAll();
}

void VerbsEndpoint::Fail() {
  {
    MutexLock lock(mutex_);
    if (state_ == QueuePairState::kError) {
      return;
    }
    state_ = QueuePairState::kError;
    give_up_at_ = std::chrono::steady_clock::now() + node().options.card_timeout;
    ++busy_;
  }
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_ERR;
  // Ignore failures: a removed card has already failed the queue pair.
  api().ModifyQp(qp_, attributes, IBV_QP_STATE);
  NotifyPeers();
  EndBusy();
}

void VerbsEndpoint::NotifyPeers() {
  std::map<std::string, std::weak_ptr<VerbsEndpoint>> others;
  {
    MutexLock lock(mutex_);
    others.swap(early_visitors_);
    others[peer_address_] = peer_;
  }
  for (const auto& [address, weak] : others) {
    if (const std::shared_ptr<VerbsEndpoint> other = weak.lock(); other != nullptr && other.get() != this) {
      other->LoseConnection(address_text_, /*fatal=*/false);
    }
  }
}

void VerbsEndpoint::LosePeer() {
  {
    MutexLock lock(mutex_);
    // An endpoint connected to itself gets the failure through its own requests.
    if (peer_lost_ || state_ != QueuePairState::kReadyToSend || peer_address_ == address_text_) {
      return;
    }
    peer_lost_ = true;
    ++busy_;
  }
  listener_.OnPeerDisconnected();
  EndBusy();
}

// --- the peer's side ---

VerbsEndpoint::PeerReadiness VerbsEndpoint::Expect(const std::shared_ptr<VerbsEndpoint>& visitor) {
  MutexLock lock(mutex_);
  if (state_ == QueuePairState::kInit) {
    early_visitors_[visitor->address_text_] = visitor;
    return PeerReadiness::kNotYet;
  }
  return state_ == QueuePairState::kError ? PeerReadiness::kFailed : PeerReadiness::kReady;
}

void VerbsEndpoint::OnPeerReady(const std::string& peer_address) {
  {
    MutexLock lock(mutex_);
    if (peer_address_ != peer_address) {
      return;
    }
    awaiting_peer_ = false;
  }
  Run();
}

// Only the youngest request that has begun can be waiting for the result: it keeps later requests from beginning.
void VerbsEndpoint::OnInvalidateResult(bool invalidated) {
  {
    MutexLock lock(mutex_);
    if (begun_ == 0 || !slots_[begun_ - 1].awaits_invalidate_result) {
      return;
    }
    Slot& slot = slots_[begun_ - 1];
    slot.awaits_invalidate_result = false;
    if (!invalidated || slot.card_is_done) {
      slot.stage = Stage::kDone;
      slot.status = invalidated ? slot.status : NtStatus::kRemoteResources;
    }
  }
  Run();
}

void VerbsEndpoint::LoseConnection(const std::string& peer_address, bool fatal) {
  {
    MutexLock lock(mutex_);
    early_visitors_.erase(peer_address);
    if (state_ != QueuePairState::kReadyToSend || peer_address_ != peer_address) {
      return;
    }
    awaiting_peer_ = false;
  }
  OnInvalidateResult(/*invalidated=*/false);
  LosePeer();
  if (fatal) {
    Fail();
  }
  Run();
}

}  // namespace rnicd::provider
