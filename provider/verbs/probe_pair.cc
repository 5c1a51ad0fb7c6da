#include "provider/verbs/probe_pair.h"

#include <chrono>
#include <thread>

namespace rnicd::provider {

ProbePair::~ProbePair() {
  for (ibv_qp* const qp : {owner_, peer_}) {
    if (qp != nullptr) {
      api().DestroyQp(qp);
    }
  }
  if (cq_ != nullptr) {
    api().DestroyCq(cq_);
  }
}

bool ProbePair::Connect() {
  const absl::StatusOr<PortAddress> port = context_.device().CurrentAddress(context_.node(), context_.raw());
  cq_ = port.ok() ? api().CreateCq(context_.raw(), 8, nullptr) : nullptr;
  if (cq_ == nullptr) {
    return false;
  }
  owner_ = MakeQueuePair();
  peer_ = MakeQueuePair();
  return owner_ != nullptr && peer_ != nullptr && ConnectTo(owner_, peer_, *port) && ConnectTo(peer_, owner_, *port);
}

ibv_qp* ProbePair::MakeQueuePair() {
  ibv_qp_init_attr attributes = {};
  attributes.send_cq = cq_;
  attributes.recv_cq = cq_;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  return api().CreateQp(pd_, attributes);
}

bool ProbePair::Modify(ibv_qp* qp, ibv_qp_attr& attributes, ibv_qp_state state, int mask) {
  attributes.qp_state = state;
  return api().ModifyQp(qp, attributes, IBV_QP_STATE | mask) == 0;
}

bool ProbePair::ConnectTo(ibv_qp* from, ibv_qp* to, const PortAddress& port) {
  const VerbsDevice& device = context_.device();
  const absl::StatusOr<uint8_t> gid_index = device.FindGid(context_.node(), context_.raw(), port.gid);
  if (!gid_index.ok()) {
    return false;
  }
  ibv_qp_attr attributes = {};
  attributes.port_num = device.port();
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  attributes.path_mtu = port.mtu;
  attributes.dest_qp_num = to->qp_num;
  attributes.max_dest_rd_atomic = 1;
  attributes.max_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.timeout = context_.node().options.ack_timeout;
  attributes.retry_cnt = 6;
  attributes.rnr_retry = 7;
  attributes.ah_attr.port_num = device.port();
  attributes.ah_attr.dlid = port.lid;
  attributes.ah_attr.is_global = port.ethernet ? 1 : 0;
  attributes.ah_attr.grh.dgid = port.gid;
  attributes.ah_attr.grh.sgid_index = *gid_index;
  attributes.ah_attr.grh.hop_limit = 1;
  return Modify(from, attributes, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
         Modify(from, attributes, IBV_QPS_RTR,
                IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                    IBV_QP_MIN_RNR_TIMER) &&
         Modify(from, attributes, IBV_QPS_RTS,
                IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

std::optional<ibv_wc_status> ProbePair::Await() {
  const auto end = std::chrono::steady_clock::now() + context_.node().options.card_timeout;
  ibv_wc completion = {};
  while (std::chrono::steady_clock::now() < end) {
    const int count = api().PollCq(cq_, 1, &completion);
    if (count != 0) {
      return count > 0 ? std::optional(completion.status) : std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

std::optional<ibv_wc_status> ProbePair::Run(ibv_qp* qp, ibv_send_wr& request) {
  request.send_flags |= IBV_SEND_SIGNALED;
  return api().PostSend(qp, request) == 0 ? Await() : std::nullopt;
}

std::optional<ibv_wc_status> ProbePair::Write(ibv_sge source, uint64_t address, uint32_t key) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.sg_list = &source;
  request.num_sge = 1;
  request.wr.rdma = {.remote_addr = address, .rkey = key};
  return RunOnPeer(request);
}

bool ProbePair::SendInvalidate(uint32_t key) {
  ibv_recv_wr receive = {};
  ibv_send_wr request = {};
  request.opcode = IBV_WR_SEND_WITH_INV;
  request.invalidate_rkey = key;
  // Both complete on the one queue, in either order.
  return api().PostRecv(owner_, receive) == 0 && RunOnPeer(request) == IBV_WC_SUCCESS && Await() == IBV_WC_SUCCESS;
}

}  // namespace rnicd::provider
