#include "provider/verbs/kernel_probe.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "provider/verbs/card/kernel_engine.h"
#include "provider/verbs/probe_pair.h"

namespace rnicd::provider {
namespace {

constexpr uint32_t kKey = 0x5a;
// Far from every address of this process, and not at the begin of a page.
constexpr uint64_t kBase = 0xabcdef0123456234;
constexpr uint32_t kOffset = kBase % kNdkPageBytes;
// Two pages, less some bytes at both ends.
constexpr uint64_t kLength = 2 * kNdkPageBytes - kOffset - 64;
constexpr uint64_t kSecondPage = kBase - kOffset + kNdkPageBytes;

// Four pages; the registration is of the third and the first, the last is the source of writes.
struct KernelProbeMemory {
  alignas(kNdkPageBytes) std::array<std::byte, 4 * kNdkPageBytes> bytes = {};
  std::byte* page(size_t index) { return bytes.data() + index * kNdkPageBytes; }
};

class KernelTrial {
 public:
  explicit KernelTrial(VerbsContext& context) : context_(context), memory_(std::make_unique<KernelProbeMemory>()) {}
  KernelTrial(const KernelTrial&) = delete;
  KernelTrial& operator=(const KernelTrial&) = delete;
  ~KernelTrial();

  // Each returns what is wrong, or an empty text.
  std::string SetUp();
  std::string TryRegistration();
  std::string TryInvalidation();

 private:
  VerbsApi& api() { return context_.api(); }
  uint32_t Token(uint32_t slot) const { return region_.keys[slot] | kKey; }
  // Submits one operation; 0 or an errno.
  int Submit(rnicd_fr_op op);
  int Register(uint32_t slot);
  // A write of the peer, on a new pair after one was refused.
  bool Writes(uint64_t address, uint32_t token);
  bool Connect();

  VerbsContext& context_;
  const std::unique_ptr<KernelProbeMemory> memory_;
  ibv_pd* pd_ = nullptr;
  ibv_mr* source_ = nullptr;
  std::shared_ptr<KernelEngine> engine_;
  PinnedRuns pinned_;
  rnicd_fr_create_region region_ = {};
  std::optional<ProbePair> pair_;
};

KernelTrial::~KernelTrial() {
  pair_.reset();
  if (region_.region != 0) {
    engine_->module().DestroyRegion(engine_->file(), region_.region);
  }
  pinned_ = {};
  engine_.reset();
  if (source_ != nullptr) {
    api().DeregMr(source_);
  }
  if (pd_ != nullptr) {
    api().DeallocPd(pd_);
  }
}

bool KernelTrial::Connect() {
  pair_.reset();
  pair_.emplace(context_, pd_);
  return pair_->Connect();
}

std::string KernelTrial::SetUp() {
  pd_ = api().AllocPd(context_.raw());
  std::byte* const last = memory_->page(3);
  source_ = pd_ != nullptr
                ? api().RegMr(pd_, last, kNdkPageBytes, reinterpret_cast<uint64_t>(last), IBV_ACCESS_LOCAL_WRITE)
                : nullptr;
  if (source_ == nullptr || !Connect()) {
    return "the probe cannot make queue pairs";
  }
  auto engine = KernelEngine::Take(context_, pd_);
  if (!engine.ok()) {
    return absl::StrCat("the kernel module does not take a domain: ", engine.status().message());
  }
  engine_ = *std::move(engine);
  const std::array<std::span<std::byte>, 2> runs = {std::span(memory_->page(2), kNdkPageBytes),
                                                    std::span(memory_->page(0), kNdkPageBytes)};
  const absl::Status pinned = engine_->Pin(runs, pinned_);
  if (!pinned.ok()) {
    return absl::StrCat("the kernel module does not map pages: ", pinned.message());
  }
  const int error = engine_->module().CreateRegion(engine_->file(), 2, region_);
  return error == 0 ? "" : absl::StrCat("the kernel module makes no region: ", std::strerror(error));
}

int KernelTrial::Submit(rnicd_fr_op op) {
  const int error = engine_->module().Submit(engine_->file(), {&op, 1}, pinned_.runs);
  return error != 0 ? error : -op.result;
}

int KernelTrial::Register(uint32_t slot) {
  rnicd_fr_op op = {};
  op.kind = RNICD_FR_REGISTER;
  op.region = region_.region;
  op.slot = slot;
  op.key = kKey;
  op.base = kBase;
  op.length = kLength;
  op.offset = kOffset;
  op.access = RNICD_FR_LOCAL_WRITE | RNICD_FR_REMOTE_WRITE;
  op.run_count = static_cast<uint32_t>(pinned_.runs.size());
  return Submit(op);
}

bool KernelTrial::Writes(uint64_t address, uint32_t token) {
  const std::byte* const last = memory_->page(3);
  const bool written =
      pair_->Write({.addr = reinterpret_cast<uint64_t>(last), .length = kWrittenBytes, .lkey = source_->lkey}, address,
                   token) == IBV_WC_SUCCESS;
  if (!written) {
    Connect();
  }
  return written;
}

std::string KernelTrial::TryRegistration() {
  if (Writes(kBase, Token(0))) {
    return "the card honours a token before its registration";
  }
  if (const int error = Register(0); error != 0) {
    return absl::StrCat("a registration failed: ", std::strerror(error));
  }
  std::memset(memory_->page(3), 1, kWrittenBytes);
  if (!Writes(kBase, Token(0)) || memory_->page(2)[kOffset] != std::byte{1}) {
    return "a write does not reach the first page";
  }
  std::memset(memory_->page(3), 2, kWrittenBytes);
  if (!Writes(kSecondPage, Token(0)) || memory_->page(0)[0] != std::byte{2}) {
    return "a write does not reach the second page";
  }
  if (Writes(kBase - 1, Token(0)) || Writes(kBase + kLength - kWrittenBytes + 1, Token(0))) {
    return "the card does not check the bounds of a registration";
  }
  return "";
}

std::string KernelTrial::TryInvalidation() {
  rnicd_fr_op op = {};
  op.kind = RNICD_FR_INVALIDATE;
  op.region = region_.region;
  op.key = kKey;
  if (const int error = Submit(op); error != 0) {
    return absl::StrCat("an invalidation failed: ", std::strerror(error));
  }
  if (Writes(kBase, Token(0))) {
    return "the card honours a token after its invalidation";
  }
  if (Register(1) != 0 || !Writes(kBase, Token(1))) {
    return "a second registration failed";
  }
  if (!pair_->SendInvalidate(Token(1)) || Writes(kBase, Token(1))) {
    return "a peer cannot invalidate a token";
  }
  return "";
}

}  // namespace

std::optional<std::string> ProbeKernel(VerbsContext& context) {
  KernelTrial trial(context);
  std::string problem = trial.SetUp();
  if (problem.empty()) {
    problem = trial.TryRegistration();
  }
  if (problem.empty()) {
    problem = trial.TryInvalidation();
  }
  return problem.empty() ? std::nullopt : std::optional(problem);
}

}  // namespace rnicd::provider
