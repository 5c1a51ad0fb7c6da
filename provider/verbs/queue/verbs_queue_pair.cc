#include "provider/verbs/queue/verbs_queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status.h"
#include "provider/verbs/card/adapter_limits.h"
#include "provider/verbs/card/verbs_status.h"

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

absl::Status VerbsQueuePair::Open() {
  VerbsContext& context = domain_->context();
  RNICD_ASSIGN_OR_RETURN(const PortAddress port, context.device().CurrentAddress(context.node(), context.raw()));
  RNICD_RETURN_IF_ERROR(Create());
  RNICD_RETURN_IF_ERROR(EnterInit());
  ethernet_ = port.ethernet;
  address_ = {.gid = port.gid,
              .qpn = qp_->qp_num,
              .psn = static_cast<uint32_t>(context.node().random.Next()) & kPsnMask,
              .lid = port.lid,
              .mtu = port.mtu,
              .origin = context.node().origin};
  return absl::OkStatus();
}

absl::Status VerbsQueuePair::ListenTo(const std::weak_ptr<CompletionSink>& sink) {
  MutexLock lock(queues_mutex_);
  return domain_->context().ListenTo(cq_, sink);
}

uint32_t VerbsQueuePair::MaxSendEntries() const {
  return std::max({limits_.initiator_entries, domain_->device().info().max_read_request_sge, 1U});
}

uint32_t VerbsQueuePair::MaxReceiveEntries() const { return std::max(limits_.receive_entries, 1U); }

// One completion queue for both queues, with room for all their completions: it never overruns. Core implements the NDK
// completion queue.
absl::Status VerbsQueuePair::Create() {
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
                    // TranslateSend may add one to one.
                    .max_send_sge = std::max(MaxSendEntries(), domain_->device().iwarp() != nullptr ? 2U : 0U),
                    .max_recv_sge = MaxReceiveEntries(),
                    .max_inline_data = limits_.inline_bytes};
  MutexLock lock(queues_mutex_);
  cq_ = cq;
  qp_ = domain_->api().CreateQp(domain_->pd(), attributes);
  return qp_ != nullptr ? absl::OkStatus() : VerbStatus(errno, "ibv_create_qp");
}

absl::Status VerbsQueuePair::EnterInit() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = domain_->device().port();
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  const int error = domain_->api().ModifyQp(qp_, attributes, kMask);
  return error == 0 ? absl::OkStatus() : VerbStatus(error, "ibv_modify_qp");
}

absl::Status VerbsQueuePair::EnterReceiving(const QpAddress& peer) {
  VerbsContext& context = domain_->context();
  const VerbsDevice& device = context.device();
  RNICD_ASSIGN_OR_RETURN(const uint8_t gid_index, device.FindGid(context.node(), context.raw(), address_.gid));
  ibv_qp_attr attributes = {};
  attributes.ah_attr = RouteTo(peer, device.port(), gid_index, ethernet_);
  attributes.path_mtu = peer.mtu;
  attributes.dest_qp_num = peer.qpn;
  attributes.rq_psn = peer.psn;
  attributes.max_dest_rd_atomic = static_cast<uint8_t>(std::min(device.info().max_inbound_read_limit, 255U));
  return ToReceiving(attributes);
}

absl::Status VerbsQueuePair::EnterSending() {
  ibv_qp_attr attributes = {};
  attributes.sq_psn = address_.psn;
  attributes.max_rd_atomic = static_cast<uint8_t>(std::min(domain_->device().info().max_outbound_read_limit, 255U));
  return ToSending(attributes);
}

absl::Status VerbsQueuePair::EnterReceiving(const QueuePairRoute& route) { return ToReceiving(route.receiving); }

absl::Status VerbsQueuePair::EnterSending(const QueuePairRoute& route) { return ToSending(route.sending); }

absl::Status VerbsQueuePair::ToReceiving(ibv_qp_attr attributes) {
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = std::min(address_.mtu, attributes.path_mtu);
  attributes.min_rnr_timer = kReceiverNotReadyTimer;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (const int error = ChangeState(attributes, kMask); error != 0) {
    return IsAboutPeer(error) ? MakeError(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address")
                              : VerbStatus(error, "ibv_modify_qp");
  }
  return absl::OkStatus();
}

// The timers are the provider's own, also along a route of the connection manager, whose are meant for storage: a
// sender without a receive at its peer would wait 655 ms, and a dead peer would be noticed after minutes.
absl::Status VerbsQueuePair::ToSending(ibv_qp_attr attributes) {
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = domain_->context().node().options.ack_timeout;
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kReceiverRetries;
  constexpr int kMask =
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  const int error = ChangeState(attributes, kMask);
  return error == 0 ? absl::OkStatus() : VerbStatus(error, "ibv_modify_qp");
}

int VerbsQueuePair::ChangeState(ibv_qp_attr& attributes, int mask) {
  MutexLock lock(states_mutex_);
  return qp_ != nullptr ? domain_->api().ModifyQp(qp_, attributes, mask) : EINVAL;
}

void VerbsQueuePair::EnterError() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_ERR;
  domain_->api().ModifyQp(qp_, attributes, IBV_QP_STATE);
}

bool VerbsQueuePair::StillWorks() {
  MutexLock lock(queues_mutex_);
  ibv_qp_state state = IBV_QPS_UNKNOWN;
  return qp_ == nullptr || (domain_->api().QueryQpState(qp_, state) == 0 && state != IBV_QPS_ERR);
}

int VerbsQueuePair::Poll(std::span<ibv_wc> completions, bool arm) {
  MutexLock lock(queues_mutex_);
  if (cq_ == nullptr) {
    return 0;
  }
  // Arm before the last poll, so that no completion is missed between the two.
  if (arm) {
    domain_->api().ArmCq(cq_);
  }
  return domain_->api().PollCq(cq_, static_cast<int>(completions.size()), completions.data());
}

// Windows first: a card may refuse to destroy a queue pair with a bound window, and the kernel then waits for a minute.
void VerbsQueuePair::Close() {
  bound_.End();
  MutexLock states(states_mutex_);
  MutexLock lock(queues_mutex_);
  if (qp_ != nullptr) {
    domain_->api().DestroyQp(std::exchange(qp_, nullptr));
  }
  if (cq_ != nullptr) {
    domain_->context().RemoveQueue(std::exchange(cq_, nullptr));
  }
}

}  // namespace rnicd::provider
