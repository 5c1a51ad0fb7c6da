#include "tests/vm/fr/card.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/vm/fr/domain_id.h"

namespace {

// The guest is the program's own; if its cards fail there is nothing to test.
void Require(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::abort();
}

constexpr int kLinkLocalFirst = 0xfe;
constexpr int kLinkLocalSecond = 0x80;

std::string Environment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

}  // namespace

std::string CardName() { return Environment("RNICD_FR_CARD", "rxa"); }
std::string PeerName() { return Environment("RNICD_FR_PEER", "rxb"); }

Card::Card(const std::string& name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i) {
    if (name != ibv_get_device_name(list[i])) continue;
    index_ = static_cast<uint32_t>(ibv_get_device_index(list[i]));
    context_ = ibv_open_device(list[i]);
  }
  ibv_free_device_list(list);
  Require(context_ != nullptr, "ibv_open_device");
  union ibv_gid found;
  while (ibv_query_gid(context_, 1, gid_slot_, &found) == 0 &&
         (found.raw[0] != kLinkLocalFirst || found.raw[1] != kLinkLocalSecond)) {
    ++gid_slot_;
  }
  const std::vector<uint32_t> others = DomainsOfThisProcess(index_);
  pd_ = ibv_alloc_pd(context_);
  Require(pd_ != nullptr, "ibv_alloc_pd");
  for (const uint32_t id : DomainsOfThisProcess(index_)) {
    if (std::ranges::find(others, id) == others.end()) domain_id_ = id;
  }
}

Card::~Card() {
  ibv_dealloc_pd(pd_);
  ibv_close_device(context_);
}

union ibv_gid Card::gid() const {
  union ibv_gid gid;
  Require(ibv_query_gid(context_, 1, gid_slot_, &gid) == 0, "ibv_query_gid");
  return gid;
}

ibv_port_attr Card::port() const {
  ibv_port_attr port = {};
  Require(ibv_query_port(context_, 1, &port) == 0, "ibv_query_port");
  return port;
}

Endpoint::Endpoint(const Card& card) : card_(card), bytes_(kBytes) {
  cq_ = ibv_create_cq(card.context(), 16, nullptr, nullptr, 0);
  Require(cq_ != nullptr, "ibv_create_cq");
  ibv_qp_init_attr init = {};
  init.send_cq = cq_;
  init.recv_cq = cq_;
  init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  init.qp_type = IBV_QPT_RC;
  qp_ = ibv_create_qp(card.pd(), &init);
  Require(qp_ != nullptr, "ibv_create_qp");
  mr_ = ibv_reg_mr(card.pd(), bytes_.data(), bytes_.size(), IBV_ACCESS_LOCAL_WRITE);
  Require(mr_ != nullptr, "ibv_reg_mr");
  ToInit();
}

Endpoint::~Endpoint() {
  ibv_destroy_qp(qp_);
  ibv_dereg_mr(mr_);
  ibv_destroy_cq(cq_);
}

void Endpoint::ToInit() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  Require(ibv_modify_qp(qp_, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
          "INIT");
}

void Endpoint::Connect(const Endpoint& peer) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = std::min(card_.port().active_mtu, peer.card_.port().active_mtu);
  attributes.dest_qp_num = peer.qp_->qp_num;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.is_global = 1;
  // On InfiniBand; 0 on Ethernet.
  attributes.ah_attr.dlid = peer.card_.port().lid;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.dgid = peer.card_.gid();
  attributes.ah_attr.grh.sgid_index = static_cast<uint8_t>(card_.gid_slot());
  attributes.ah_attr.grh.hop_limit = 1;
  Require(ibv_modify_qp(qp_, &attributes,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "RTR");
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 16;
  attributes.retry_cnt = 6;
  attributes.rnr_retry = 7;
  attributes.max_rd_atomic = 1;
  Require(ibv_modify_qp(qp_, &attributes,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "RTS");
}

ibv_wc Endpoint::Poll() {
  ibv_wc completion = {};
  int got = 0;
  while (got == 0) got = ibv_poll_cq(cq_, 1, &completion);
  Require(got == 1, "ibv_poll_cq");
  return completion;
}

ibv_wc_status Endpoint::Run(ibv_send_wr& request, size_t length) {
  ibv_sge piece = {
      .addr = reinterpret_cast<uintptr_t>(bytes_.data()), .length = static_cast<uint32_t>(length), .lkey = mr_->lkey};
  ibv_send_wr* bad = nullptr;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  Require(ibv_post_send(qp_, &request, &bad) == 0, "ibv_post_send");
  return Poll().status;
}

ibv_wc_status Endpoint::Write(uint64_t address, uint32_t key, size_t length) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma = {.remote_addr = address, .rkey = key};
  return Run(request, length);
}

ibv_wc_status Endpoint::Read(uint64_t address, uint32_t key, size_t length) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_RDMA_READ;
  request.wr.rdma = {.remote_addr = address, .rkey = key};
  return Run(request, length);
}

ibv_wc_status Endpoint::SendWithInvalidate(uint32_t key) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_SEND_WITH_INV;
  request.invalidate_rkey = key;
  return Run(request, 8);
}

void Endpoint::PostReceive() {
  ibv_sge piece = {.addr = reinterpret_cast<uintptr_t>(bytes_.data()), .length = kBytes, .lkey = mr_->lkey};
  ibv_recv_wr request = {};
  ibv_recv_wr* bad = nullptr;
  request.sg_list = &piece;
  request.num_sge = 1;
  Require(ibv_post_recv(qp_, &request, &bad) == 0, "ibv_post_recv");
}

void Pair::Renew() {
  owner_ = std::make_unique<Endpoint>(owner_card_);
  peer_ = std::make_unique<Endpoint>(peer_card_);
  owner_->Connect(*peer_);
  peer_->Connect(*owner_);
}

bool Pair::Settle(ibv_wc_status status) {
  if (status == IBV_WC_SUCCESS) return true;
  Renew();
  return false;
}

bool Pair::Writes(uint64_t address, uint32_t key, size_t length) { return Settle(peer_->Write(address, key, length)); }
bool Pair::Reads(uint64_t address, uint32_t key, size_t length) { return Settle(peer_->Read(address, key, length)); }
