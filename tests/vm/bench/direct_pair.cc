#include "tests/vm/bench/direct_pair.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace rnicd::vm_bench {
namespace {

constexpr uint8_t kPort = 1;
constexpr int kDepth = 16;

void RequireZero(int error, const std::string& call) { Require(error == 0, call + ": " + std::strerror(error)); }

// The first address of the card that RoCE v2 can use.
ibv_gid_entry OwnAddress(ibv_context* context) {
  std::array<ibv_gid_entry, 256> table;
  const ssize_t count = ibv_query_gid_table(context, table.data(), table.size(), 0);
  for (ssize_t index = 0; index < count; ++index) {
    const ibv_gid_entry& entry = table[static_cast<size_t>(index)];
    if (entry.port_num == kPort && entry.gid_type == IBV_GID_TYPE_ROCE_V2) {
      return entry;
    }
  }
  Fail("the card has no address of RoCE v2");
}

}  // namespace

DirectPair::DirectPair(DirectCard& card) : memory_(Source::kSmallPages, 2 * kSmallPage) {
  memory_.Populate();
  region_ = card.Register(memory_.bytes());
  channel_ = ibv_create_comp_channel(card.context());
  Require(channel_ != nullptr, "ibv_create_comp_channel");
  queue_ = ibv_create_cq(card.context(), kDepth, nullptr, channel_, 0);
  Require(queue_ != nullptr, "ibv_create_cq");
  ibv_qp_init_attr attributes = {};
  attributes.send_cq = queue_;
  attributes.recv_cq = queue_;
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = 1;
  attributes.cap = {
      .max_send_wr = kDepth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  pair_ = ibv_create_qp(card.domain(), &attributes);
  Require(pair_ != nullptr, "ibv_create_qp");
  Connect(card.context());
}

DirectPair::~DirectPair() {
  ibv_destroy_qp(pair_);
  ibv_destroy_cq(queue_);
  ibv_destroy_comp_channel(channel_);
  DirectCard::Deregister(region_);
}

void DirectPair::Connect(ibv_context* context) {
  const ibv_gid_entry own = OwnAddress(context);
  ibv_qp_attr init = {};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = kPort;
  init.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  RequireZero(ibv_modify_qp(pair_, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              "ibv_modify_qp to INIT");
  ibv_qp_attr ready = {};
  ready.qp_state = IBV_QPS_RTR;
  ready.ah_attr.port_num = kPort;
  ready.ah_attr.is_global = 1;
  ready.ah_attr.grh = {.dgid = own.gid,
                       .flow_label = 0,
                       .sgid_index = static_cast<uint8_t>(own.gid_index),
                       .hop_limit = 64,
                       .traffic_class = 0};
  ready.path_mtu = IBV_MTU_1024;
  ready.dest_qp_num = pair_->qp_num;
  ready.max_dest_rd_atomic = 1;
  ready.min_rnr_timer = 12;
  RequireZero(ibv_modify_qp(pair_, &ready,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              "ibv_modify_qp to RTR");
  ready.qp_state = IBV_QPS_RTS;
  ready.timeout = 14;
  ready.retry_cnt = 7;
  ready.rnr_retry = 7;
  ready.max_rd_atomic = 1;
  RequireZero(ibv_modify_qp(pair_, &ready,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                IBV_QP_MAX_QP_RD_ATOMIC),
              "ibv_modify_qp to RTS");
}

void DirectPair::Write(uint32_t bytes, Wait wait) {
  if (wait == Wait::kForEvent) {
    RequireZero(ibv_req_notify_cq(queue_, 0), "ibv_req_notify_cq");
  }
  const auto address = reinterpret_cast<uint64_t>(memory_.bytes().data());
  ibv_sge piece = {.addr = address, .length = bytes, .lkey = region_->lkey};
  ibv_send_wr request = {};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma = {.remote_addr = address + kSmallPage, .rkey = region_->rkey};
  ibv_send_wr* refused = nullptr;
  RequireZero(ibv_post_send(pair_, &request, &refused), "ibv_post_send");
  if (wait == Wait::kForEvent) {
    SleepUntilEvent();
  }
  ibv_wc completion = {};
  while (ibv_poll_cq(queue_, 1, &completion) == 0) {
  }
  Require(completion.status == IBV_WC_SUCCESS, ibv_wc_status_str(completion.status));
}

void DirectPair::SleepUntilEvent() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  Require(ibv_get_cq_event(channel_, &queue, &context) == 0, "ibv_get_cq_event");
  ibv_ack_cq_events(queue, 1);
}

}  // namespace rnicd::vm_bench
