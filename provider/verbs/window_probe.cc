#include "provider/verbs/window_probe.h"

#include <array>
#include <optional>

#include "base/units.h"
#include "provider/verbs/probe_pair.h"

namespace rnicd::provider {
namespace {

constexpr uint64_t kWindowOffset = kNdkPageBytes;

// Three pages; the window covers the middle one.
struct WindowProbeMemory {
  alignas(kNdkPageBytes) std::array<std::byte, 3 * kNdkPageBytes> bytes;
};

// Objects of one trial, destroyed in the only safe order: window, queue pairs, region, domain.
class Trial {
 public:
  explicit Trial(VerbsContext& context) : context_(context), memory_(std::make_unique<WindowProbeMemory>()) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial();

  // False when an object cannot be created.
  bool SetUp();
  bool Bind();
  // Status of a write of kWrittenBytes through the window at that offset into the memory; nullopt when no completion
  // arrives.
  std::optional<ibv_wc_status> WriteAt(uint64_t offset);

 private:
  VerbsApi& api() { return context_.api(); }

  VerbsContext& context_;
  const std::unique_ptr<WindowProbeMemory> memory_;
  ibv_pd* pd_ = nullptr;
  ibv_mr* region_ = nullptr;
  std::optional<ProbePair> pair_;
  ibv_mw* window_ = nullptr;
  uint32_t window_key_ = 0;
};

Trial::~Trial() {
  if (window_ != nullptr) {
    api().DeallocMw(window_);
  }
  pair_.reset();
  if (region_ != nullptr) {
    api().DeregMr(region_);
  }
  if (pd_ != nullptr) {
    api().DeallocPd(pd_);
  }
}

bool Trial::SetUp() {
  pd_ = api().AllocPd(context_.raw());
  if (pd_ == nullptr) {
    return false;
  }
  std::byte* const memory = memory_->bytes.data();
  region_ = api().RegMr(pd_, memory, memory_->bytes.size(), reinterpret_cast<uint64_t>(memory),
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  pair_.emplace(context_, pd_);
  return pair_->Connect() && region_ != nullptr;
}

bool Trial::Bind() {
  window_ = api().AllocMw(pd_);
  if (window_ == nullptr) {
    return false;
  }
  window_key_ = ibv_inc_rkey(window_->rkey);
  ibv_send_wr request = {};
  request.opcode = IBV_WR_BIND_MW;
  request.bind_mw.mw = window_;
  request.bind_mw.rkey = window_key_;
  request.bind_mw.bind_info.mr = region_;
  request.bind_mw.bind_info.addr = reinterpret_cast<uint64_t>(memory_->bytes.data()) + kWindowOffset;
  request.bind_mw.bind_info.length = kNdkPageBytes;
  request.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
  return pair_->RunOnOwner(request) == IBV_WC_SUCCESS;
}

std::optional<ibv_wc_status> Trial::WriteAt(uint64_t offset) {
  const auto memory = reinterpret_cast<uint64_t>(memory_->bytes.data());
  return pair_->Write({.addr = memory, .length = kWrittenBytes, .lkey = region_->lkey}, memory + offset, window_key_);
}

}  // namespace

WindowSupport ProbeWindows(VerbsContext& context) {
  if (!context.device().can_bind_type2()) {
    return WindowSupport::kUnusable;
  }
  Trial trial(context);
  if (!trial.SetUp() || !trial.Bind() || trial.WriteAt(kWindowOffset) != IBV_WC_SUCCESS) {
    return WindowSupport::kUnusable;
  }
  const std::optional<ibv_wc_status> outside = trial.WriteAt(kWindowOffset + kNdkPageBytes);
  if (!outside.has_value()) {
    return WindowSupport::kUnusable;
  }
  return *outside == IBV_WC_SUCCESS ? WindowSupport::kUnbounded : WindowSupport::kBounded;
}

}  // namespace rnicd::provider
