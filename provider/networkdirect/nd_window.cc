#include "provider/networkdirect/nd_window.h"

#include <utility>
#include <vector>

#include "base/status.h"

namespace rnicd::provider {
namespace {

NdMemoryRegion& RegionOf(const BindWork& work) { return static_cast<NdMemoryRegion&>(*work.region); }

}  // namespace

NdWindow::~NdWindow() {
  Retire();
  domain_->remote_tokens().Remove(first_token_);
}

RemoteToken NdWindow::remote_token() const {
  MutexLock lock(mutex_);
  return issued_;
}

absl::StatusOr<std::unique_ptr<NdGrant>> NdWindow::Prepare(const BindWork& work, bool connected) const {
  NdMemoryRegion& region = RegionOf(work);
  // Counted as a window while its memory is read, because the region could be deregistered meanwhile.
  if (!region.AddWindow()) {
    return MakeError(ErrorReason::REGION_NOT_REGISTERED, "bind.mr_id");
  }
  const std::vector<std::span<std::byte>> runs = region.Part(work.base, work.length);
  const NdGrant::Shape shape{.base = work.base, .length = work.length, .rights = work.rights, .runs = runs};
  absl::StatusOr<std::unique_ptr<NdGrant>> grant = NdGrant::ForBind(domain_, region.registration(), shape, connected);
  region.RemoveWindow();
  return grant;
}

void NdWindow::Issue(RemoteToken token) {
  MutexLock lock(mutex_);
  issued_ = token;
}

bool NdWindow::BeginBind(const BindWork& work) {
  MutexLock lock(mutex_);
  return !retired_ && current_ == nullptr && RegionOf(work).AddWindow();
}

bool NdWindow::Bind(std::unique_ptr<NdGrant> grant, RemoteToken token, uint64_t queue_pair, BindWork& work) {
  {
    MutexLock lock(mutex_);
    if (!retired_ && current_ == nullptr) {
      current_ = std::move(grant);
      current_token_ = token;
      bound_by_ = queue_pair;
      kept_ = {.region = std::move(work.region), .backing = std::move(work.backing)};
      Publish();
      return true;
    }
  }
  grant.reset();
  domain_->remote_tokens().Remove(token.value);
  AbortBind(work);
  return false;
}

void NdWindow::AbortBind(const BindWork& work) { RegionOf(work).RemoveWindow(); }

ComPtr<IND2MemoryWindow> NdWindow::WindowOf(uint64_t queue_pair) const {
  MutexLock lock(mutex_);
  return current_ != nullptr && bound_by_ == queue_pair ? current_->window() : ComPtr<IND2MemoryWindow>();
}

void NdWindow::Publish() {
  domain_->remote_tokens().Set(current_token_.value, {.range = current_->remote_range(), .owner = weak_from_this()});
}

bool NdWindow::EndCurrent(Kept& kept) {
  domain_->remote_tokens().Set(current_token_.value, {});
  if (!current_->End().ok()) {
    Publish();
    return false;
  }
  domain_->remote_tokens().Remove(current_token_.value);
  current_ = nullptr;
  bound_by_ = 0;
  static_cast<NdMemoryRegion&>(*kept_.region).RemoveWindow();
  kept = std::exchange(kept_, {});
  return true;
}

bool NdWindow::Invalidate() {
  Kept kept;
  MutexLock lock(mutex_);
  return current_ != nullptr && EndCurrent(kept);
}

bool NdWindow::InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) {
  Kept kept;
  MutexLock lock(mutex_);
  return current_ != nullptr && token == current_token_.value && arrived_at.value_or(bound_by_) == bound_by_ &&
         EndCurrent(kept);
}

void NdWindow::Retire() {
  {
    MutexLock lock(mutex_);
    retired_ = true;
  }
  Invalidate();
}

}  // namespace rnicd::provider
