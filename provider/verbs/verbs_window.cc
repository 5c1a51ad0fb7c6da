#include "provider/verbs/verbs_window.h"

#include <utility>
#include <vector>

#include "base/status.h"

namespace rnicd::provider {
namespace {

VerbsMemoryRegion& RegionOf(const BindWork& work) { return static_cast<VerbsMemoryRegion&>(*work.region); }

}  // namespace

VerbsWindow::~VerbsWindow() { Retire(); }

RemoteToken VerbsWindow::remote_token() const {
  MutexLock lock(mutex_);
  return issued_;
}

absl::StatusOr<std::unique_ptr<Grant>> VerbsWindow::Prepare(const BindWork& work) const {
  VerbsMemoryRegion& region = RegionOf(work);
  if (!region.takes_windows()) {
    return MakeErrorWithDetail(ErrorInfo{.reason = ErrorReason::DEVICE_NOT_CAPABLE, .field = "bind.mr_id"},
                               "no window can be bound to a region of a dma-buf");
  }
  // Counted as a window while its memory is read, because the region could be deregistered meanwhile.
  if (!region.AddWindow()) {
    return MakeError(ErrorReason::REGION_NOT_REGISTERED, "bind.mr_id");
  }
  const std::vector<std::span<std::byte>> runs = region.Slice(work.base, work.length);
  const Grant::Shape shape{.base = work.base, .length = work.length, .rights = work.rights, .runs = runs};
  absl::StatusOr<std::unique_ptr<Grant>> grant = domain_->device().engines().windows
                                                     ? Grant::OpenWindow(domain_, region.mr(), shape)
                                                     : Grant::Register(domain_, shape);
  region.RemoveWindow();
  return grant;
}

void VerbsWindow::Issue(RemoteToken token) {
  MutexLock lock(mutex_);
  issued_ = token;
}

bool VerbsWindow::BeginBind(const BindWork& work) {
  MutexLock lock(mutex_);
  return !retired_ && current_ == nullptr && RegionOf(work).AddWindow();
}

bool VerbsWindow::Bind(std::unique_ptr<Grant> grant, BindWork& work, uint32_t queue_pair) {
  {
    MutexLock lock(mutex_);
    if (!retired_ && current_ == nullptr) {
      current_ = std::move(grant);
      bound_by_ = queue_pair;
      kept_ = {.region = std::move(work.region), .backing = std::move(work.backing)};
      domain_->SetRemote(current_->token(), weak_from_this());
      return true;
    }
  }
  grant.reset();
  AbortBind(work);
  return false;
}

void VerbsWindow::AbortBind(const BindWork& work) { RegionOf(work).RemoveWindow(); }

bool VerbsWindow::EndCurrent(Kept& kept) {
  if (!current_->End().ok()) {
    return false;
  }
  domain_->RemoveRemote(current_->token());
  current_ = nullptr;
  static_cast<VerbsMemoryRegion&>(*kept_.region).RemoveWindow();
  kept = std::exchange(kept_, {});
  return true;
}

bool VerbsWindow::Invalidate() {
  Kept kept;
  MutexLock lock(mutex_);
  if (current_ == nullptr) {
    return false;
  }
  return EndCurrent(kept);
}

bool VerbsWindow::InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) {
  Kept kept;
  MutexLock lock(mutex_);
  if (current_ == nullptr || token != current_->token() || arrived_at.value_or(bound_by_) != bound_by_) {
    return false;
  }
  return EndCurrent(kept);
}

void VerbsWindow::Retire() {
  {
    MutexLock lock(mutex_);
    retired_ = true;
  }
  Invalidate();
}

}  // namespace rnicd::provider
