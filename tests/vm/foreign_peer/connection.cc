#include "tests/vm/foreign_peer/connection.h"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace foreign_peer {
namespace {

constexpr uint32_t kQueueDepth = 16;
// Maximum number of writes in flight.
constexpr uint64_t kWritesAtOnce = 4;
constexpr uint8_t kReadsAtOnce = 16;
// Retransmissions of a packet. Not 7: rdma_rxe treats 7 as infinite, which is specified only for the RNR retry count.
constexpr uint8_t kRetries = 6;
constexpr uint8_t kReceiverRetries = 7;
constexpr uint8_t kReceiverNotReadyTimer = 12;
constexpr uint8_t kHopLimit = 64;
constexpr uint32_t kPsnMask = 0xffffff;

[[noreturn]] void Die(const std::string& what, int error) {
  std::fprintf(stderr, "rnicd_foreign_peer: %s: %s\n", what.c_str(), std::strerror(error));
  std::exit(1);
}

template <typename Object>
Object* Must(Object* object, const char* call) {
  if (object == nullptr) {
    Die(call, errno);
  }
  return object;
}

bool IsIpv4(const ibv_gid& gid) {
  constexpr std::array<uint8_t, 12> kPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kPrefix.begin(), kPrefix.end(), gid.raw);
}
bool IsLinkLocal(const ibv_gid& gid) { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80; }

bool Suits(const ibv_gid_entry& entry, const std::string& wanted) {
  if (wanted == "auto") {
    return true;
  }
  if (wanted == "ipv4") {
    return IsIpv4(entry.gid);
  }
  if (wanted == "link-local") {
    return IsLinkLocal(entry.gid);
  }
  if (wanted == "ipv6") {
    return !IsIpv4(entry.gid) && !IsLinkLocal(entry.gid);
  }
  const std::string as_ipv6 = wanted.find(':') == std::string::npos ? "::ffff:" + wanted : wanted;
  ibv_gid gid = {};
  return inet_pton(AF_INET6, as_ipv6.c_str(), gid.raw) == 1 && std::memcmp(gid.raw, entry.gid.raw, sizeof(gid)) == 0;
}

}  // namespace

std::string CompletionName(ibv_wc_status status) {
  constexpr std::array kNames = {"SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
                                 "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
                                 "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
                                 "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
                                 "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
                                 "RESP_TIMEOUT_ERR", "GENERAL_ERR"};
  const size_t index = static_cast<size_t>(status);
  return index < kNames.size() ? kNames[index] : "STATUS_" + std::to_string(index);
}

Connection::Connection(const ConnectionOptions& options)
    : options_(options), memory_(options.buffer_bytes), scratch_(options.buffer_bytes) {
  OpenDevice();
  ChooseGid();
  MakeQueues();
  std::random_device random;
  address_.qpn = qp_->qp_num;
  address_.psn = random() & kPsnMask;
}

Connection::~Connection() {
  ibv_destroy_qp(qp_);
  ibv_destroy_cq(send_cq_);
  ibv_destroy_cq(receive_cq_);
  ibv_destroy_comp_channel(channel_);
  ibv_dereg_mr(memory_mr_);
  ibv_dereg_mr(scratch_mr_);
  ibv_dealloc_pd(pd_);
  ibv_close_device(context_);
}

void Connection::OpenDevice() {
  int count = 0;
  ibv_device** const devices = Must(ibv_get_device_list(&count), "ibv_get_device_list");
  for (int index = 0; index < count && context_ == nullptr; ++index) {
    if (options_.device.empty() || options_.device == ibv_get_device_name(devices[index])) {
      context_ = Must(ibv_open_device(devices[index]), "ibv_open_device");
    }
  }
  ibv_free_device_list(devices);
  if (context_ == nullptr) {
    Die("no card " + options_.device, ENODEV);
  }
  ibv_port_attr port = {};
  if (const int error = ibv_query_port(context_, options_.port, &port); error != 0) {
    Die("ibv_query_port", error);
  }
  address_.lid = port.lid;
  address_.mtu = port.active_mtu;
  ethernet_ = port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

void Connection::ChooseGid() {
  std::array<ibv_gid_entry, 256> table;
  const ssize_t count = ibv_query_gid_table(context_, table.data(), table.size(), 0);
  for (ssize_t index = 0; index < count; ++index) {
    const ibv_gid_entry& entry = table[static_cast<size_t>(index)];
    // Both ends must use the same version of RoCE; this program uses version 2.
    if (entry.port_num == options_.port && entry.gid_type != IBV_GID_TYPE_ROCE_V1 && Suits(entry, options_.gid)) {
      address_.gid = entry.gid;
      gid_index_ = static_cast<uint8_t>(entry.gid_index);
      return;
    }
  }
  Die("no address " + options_.gid, ENOENT);
}

void Connection::MakeQueues() {
  pd_ = Must(ibv_alloc_pd(context_), "ibv_alloc_pd");
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  memory_mr_ = Must(ibv_reg_mr(pd_, memory_.data(), memory_.size(), kAccess), "ibv_reg_mr");
  scratch_mr_ = Must(ibv_reg_mr(pd_, scratch_.data(), scratch_.size(), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
  channel_ = Must(ibv_create_comp_channel(context_), "ibv_create_comp_channel");
  send_cq_ = Must(ibv_create_cq(context_, kQueueDepth, nullptr, channel_, 0), "ibv_create_cq");
  receive_cq_ = Must(ibv_create_cq(context_, kQueueDepth, nullptr, channel_, 0), "ibv_create_cq");
  ibv_qp_init_attr attributes = {};
  attributes.send_cq = send_cq_;
  attributes.recv_cq = receive_cq_;
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = 1;
  attributes.cap = {.max_send_wr = kQueueDepth,
                    .max_recv_wr = kQueueDepth,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = 0};
  qp_ = Must(ibv_create_qp(pd_, &attributes), "ibv_create_qp");
  ibv_qp_attr init = {};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = options_.port;
  init.qp_access_flags = kAccess;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (const int error = ibv_modify_qp(qp_, &init, kMask); error != 0) {
    Die("ibv_modify_qp to INIT", error);
  }
}

std::string Connection::Connect(const Address& peer) {
  ibv_device_attr device = {};
  ibv_query_device(context_, &device);
  const auto reads = static_cast<uint8_t>(std::min<int>(kReadsAtOnce, std::max(device.max_qp_rd_atom, 1)));
  ibv_qp_attr ready = {};
  ready.qp_state = IBV_QPS_RTR;
  ready.ah_attr.port_num = options_.port;
  ready.ah_attr.dlid = peer.lid;
  ready.ah_attr.is_global = ethernet_ ? 1 : 0;
  ready.ah_attr.grh = {
      .dgid = peer.gid, .flow_label = 0, .sgid_index = gid_index_, .hop_limit = kHopLimit, .traffic_class = 0};
  ready.path_mtu = std::min(address_.mtu, peer.mtu);
  ready.dest_qp_num = peer.qpn;
  ready.rq_psn = peer.psn;
  ready.max_dest_rd_atomic = reads;
  ready.min_rnr_timer = kReceiverNotReadyTimer;
  constexpr int kReceiveMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (const int error = ibv_modify_qp(qp_, &ready, kReceiveMask); error != 0) {
    return std::string("RTR ") + strerrorname_np(error);
  }
  ready.qp_state = IBV_QPS_RTS;
  ready.timeout = options_.ack_timeout;
  ready.retry_cnt = kRetries;
  ready.rnr_retry = kReceiverRetries;
  ready.sq_psn = address_.psn;
  ready.max_rd_atomic = reads;
  constexpr int kSendMask =
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  if (const int error = ibv_modify_qp(qp_, &ready, kSendMask); error != 0) {
    return std::string("RTS ") + strerrorname_np(error);
  }
  return "";
}

bool Connection::PostSend(ibv_wr_opcode opcode, uint64_t remote_address, uint32_t rkey, uint32_t length) {
  ibv_sge piece = {.addr = reinterpret_cast<uint64_t>(scratch_.data()), .length = length, .lkey = scratch_mr_->lkey};
  ibv_send_wr request = {};
  request.opcode = opcode;
  request.sg_list = &piece;
  request.num_sge = length > 0 ? 1 : 0;
  if (opcode == IBV_WR_SEND_WITH_INV) {
    request.invalidate_rkey = rkey;
  } else {
    request.wr.rdma = {.remote_addr = remote_address, .rkey = rkey};
  }
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(qp_, &request, &refused) == 0;
}

Outcome Connection::RunSend(ibv_wr_opcode opcode, uint64_t remote_address, uint32_t rkey, uint32_t length) {
  if (!PostSend(opcode, remote_address, rkey, length)) {
    return {.error = "POST_FAILED"};
  }
  return Wait(send_cq_, std::chrono::steady_clock::now() + options_.timeout);
}

Outcome Connection::Write(uint64_t remote_address, uint32_t rkey, uint32_t length) {
  return RunSend(IBV_WR_RDMA_WRITE, remote_address, rkey, length);
}

Outcome Connection::Read(uint64_t remote_address, uint32_t rkey, uint32_t length) {
  return RunSend(IBV_WR_RDMA_READ, remote_address, rkey, length);
}

Outcome Connection::Send(uint32_t length) { return RunSend(IBV_WR_SEND, 0, 0, length); }

Outcome Connection::SendInvalidate(uint32_t rkey) { return RunSend(IBV_WR_SEND_WITH_INV, 0, rkey, 0); }

Outcome Connection::Receive() {
  ibv_sge piece = {.addr = reinterpret_cast<uint64_t>(scratch_.data()),
                   .length = static_cast<uint32_t>(scratch_.size()),
                   .lkey = scratch_mr_->lkey};
  ibv_recv_wr request = {};
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  // A receive whose wait timed out is still posted.
  if (!receive_posted_ && ibv_post_recv(qp_, &request, &refused) != 0) {
    return {.error = "POST_FAILED"};
  }
  const Outcome outcome = Wait(receive_cq_, std::chrono::steady_clock::now() + options_.timeout);
  receive_posted_ = outcome.error == "NO_COMPLETION";
  return outcome;
}

Outcome Connection::WriteFor(std::chrono::milliseconds duration, uint64_t remote_address, uint32_t rkey,
                             uint32_t length, uint64_t& writes) {
  const Deadline end = std::chrono::steady_clock::now() + duration;
  uint64_t under_way = 0;
  uint64_t number = 0;
  writes = 0;
  while (true) {
    while (under_way < kWritesAtOnce && std::chrono::steady_clock::now() < end) {
      ++number;
      std::memcpy(scratch_.data(), &number, std::min<size_t>(sizeof(number), length));
      if (!PostSend(IBV_WR_RDMA_WRITE, remote_address, rkey, length)) {
        return {.error = "POST_FAILED"};
      }
      ++under_way;
    }
    if (under_way == 0) {
      return {};
    }
    const Outcome outcome = Wait(send_cq_, std::chrono::steady_clock::now() + options_.timeout);
    if (!outcome.ok()) {
      return outcome;
    }
    --under_way;
    ++writes;
  }
}

Outcome Connection::Wait(ibv_cq* cq, Deadline deadline) {
  ibv_wc completion = {};
  while (true) {
    // Arm before the last poll, so that no completion is missed between the two.
    int count = ibv_poll_cq(cq, 1, &completion);
    if (count == 0) {
      ibv_req_notify_cq(cq, 0);
      count = ibv_poll_cq(cq, 1, &completion);
    }
    if (count != 0) {
      return {.error = completion.status == IBV_WC_SUCCESS ? "" : CompletionName(completion.status),
              .bytes = completion.byte_len};
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd watched = {.fd = channel_->fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&watched, 1, static_cast<int>(left.count())) == 0) {
      return {.error = "NO_COMPLETION"};
    }
    ibv_cq* event_cq = nullptr;
    void* event_context = nullptr;
    if ((watched.revents & POLLIN) != 0 && ibv_get_cq_event(channel_, &event_cq, &event_context) == 0) {
      ibv_ack_cq_events(event_cq, 1);
    }
  }
}

std::string Connection::State() const {
  constexpr std::array kNames = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  ibv_qp_attr attributes = {};
  ibv_qp_init_attr init = {};
  if (ibv_query_qp(qp_, &attributes, IBV_QP_STATE, &init) != 0 ||
      static_cast<size_t>(attributes.qp_state) >= kNames.size()) {
    return "UNKNOWN";
  }
  return kNames[static_cast<size_t>(attributes.qp_state)];
}

}  // namespace foreign_peer
