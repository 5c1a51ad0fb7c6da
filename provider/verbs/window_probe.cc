#include "provider/verbs/window_probe.h"

#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "base/units.h"

namespace rnicd::provider {
namespace {

constexpr uint64_t kWindowOffset = kNdkPageBytes;
constexpr uint32_t kWrittenBytes = 8;

// Three pages, of which the window shows the middle one.
struct ProbeMemory {
  alignas(kNdkPageBytes) std::array<std::byte, 3 * kNdkPageBytes> bytes;
};

// What a trial makes, taken down in the only order that is safe: windows, queue pairs, region, queue, domain.
class Trial {
 public:
  explicit Trial(VerbsContext& context) : context_(context), memory_(std::make_unique<ProbeMemory>()) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial();

  // False when anything of it cannot be had.
  bool SetUp();
  bool Bind();
  // The status of a write of some bytes at that offset into the memory, through the window; nothing when there is none.
  std::optional<ibv_wc_status> WriteAt(uint64_t offset);

 private:
  VerbsApi& api() { return context_.api(); }
  ibv_qp* MakeQueuePair();
  bool Connect(ibv_qp* from, ibv_qp* to, const PortAddress& port);
  bool Modify(ibv_qp* qp, ibv_qp_attr& attributes, ibv_qp_state state, int mask);
  std::optional<ibv_wc_status> Await();

  VerbsContext& context_;
  const std::unique_ptr<ProbeMemory> memory_;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_qp* owner_ = nullptr;
  ibv_qp* peer_ = nullptr;
  ibv_mw* window_ = nullptr;
  uint32_t window_key_ = 0;
};

Trial::~Trial() {
  if (window_ != nullptr) {
    api().DeallocMw(window_);
  }
  for (ibv_qp* const qp : {owner_, peer_}) {
    if (qp != nullptr) {
      api().DestroyQp(qp);
    }
  }
  if (region_ != nullptr) {
    api().DeregMr(region_);
  }
  if (cq_ != nullptr) {
    api().DestroyCq(cq_);
  }
  if (pd_ != nullptr) {
    api().DeallocPd(pd_);
  }
}

bool Trial::SetUp() {
  const absl::StatusOr<PortAddress> port = context_.device().CurrentAddress(context_.node(), context_.raw());
  pd_ = api().AllocPd(context_.raw());
  cq_ = api().CreateCq(context_.raw(), 8, nullptr);
  if (!port.ok() || pd_ == nullptr || cq_ == nullptr) {
    return false;
  }
  std::byte* const memory = memory_->bytes.data();
  region_ = api().RegMr(pd_, memory, memory_->bytes.size(), reinterpret_cast<uint64_t>(memory),
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  owner_ = MakeQueuePair();
  peer_ = MakeQueuePair();
  return region_ != nullptr && owner_ != nullptr && peer_ != nullptr && Connect(owner_, peer_, *port) &&
         Connect(peer_, owner_, *port);
}

ibv_qp* Trial::MakeQueuePair() {
  ibv_qp_init_attr attributes = {};
  attributes.send_cq = cq_;
  attributes.recv_cq = cq_;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  return api().CreateQp(pd_, attributes);
}

bool Trial::Modify(ibv_qp* qp, ibv_qp_attr& attributes, ibv_qp_state state, int mask) {
  attributes.qp_state = state;
  return api().ModifyQp(qp, attributes, IBV_QP_STATE | mask) == 0;
}

bool Trial::Connect(ibv_qp* from, ibv_qp* to, const PortAddress& port) {
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

std::optional<ibv_wc_status> Trial::Await() {
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

bool Trial::Bind() {
  window_ = api().AllocMw(pd_);
  if (window_ == nullptr) {
    return false;
  }
  window_key_ = ibv_inc_rkey(window_->rkey);
  ibv_send_wr request = {};
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_mw.mw = window_;
  request.bind_mw.rkey = window_key_;
  request.bind_mw.bind_info.mr = region_;
  request.bind_mw.bind_info.addr = reinterpret_cast<uint64_t>(memory_->bytes.data()) + kWindowOffset;
  request.bind_mw.bind_info.length = kNdkPageBytes;
  request.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
  return api().PostSend(owner_, request) == 0 && Await() == IBV_WC_SUCCESS;
}

std::optional<ibv_wc_status> Trial::WriteAt(uint64_t offset) {
  const uint64_t memory = reinterpret_cast<uint64_t>(memory_->bytes.data());
  ibv_sge source = {.addr = memory, .length = kWrittenBytes, .lkey = region_->lkey};
  ibv_send_wr request = {};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &source;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = memory + offset;
  request.wr.rdma.rkey = window_key_;
  return api().PostSend(peer_, request) == 0 ? Await() : std::nullopt;
}

}  // namespace

WindowVerdict ProbeWindows(VerbsContext& context) {
  if (!context.device().can_bind_type2()) {
    return WindowVerdict::kUnusable;
  }
  Trial trial(context);
  if (!trial.SetUp() || !trial.Bind() || trial.WriteAt(kWindowOffset) != IBV_WC_SUCCESS) {
    return WindowVerdict::kUnusable;
  }
  const std::optional<ibv_wc_status> outside = trial.WriteAt(kWindowOffset + kNdkPageBytes);
  if (!outside.has_value()) {
    return WindowVerdict::kUnusable;
  }
  return *outside == IBV_WC_SUCCESS ? WindowVerdict::kUnbounded : WindowVerdict::kBounded;
}

}  // namespace rnicd::provider
