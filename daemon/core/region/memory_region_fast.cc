// The fast-register part of MemoryRegion: its initialization, and what work requests need from it.

#include "base/status.h"
#include "daemon/core/region/memory_region.h"

namespace rnicd::core {

absl::Status MemoryRegion::CheckInitializable() const {
  switch (state_) {
    case State::kCreated:
      return absl::OkStatus();
    case State::kInitialized:
      return MakeError(ErrorReason::REGION_ALREADY_INITIALIZED, "mr_id");
    default:
      return MakeError(ErrorReason::REGION_BUSY, "mr_id");
  }
}

absl::Status MemoryRegion::CheckInitialized() const {
  return state_ == State::kInitialized ? absl::OkStatus() : MakeError(ErrorReason::REGION_NOT_INITIALIZED, "mr_id");
}

absl::StatusOr<MemoryRegion::InitializeRequest> MemoryRegion::BeginInitialize(uint32_t max_pages, bool remote_access,
                                                                              const std::shared_ptr<Ledger>& ledger) {
  if (!fast_register_) {
    return MakeError(ErrorReason::REGION_WRONG_KIND, "mr_id");
  }
  if (max_pages == 0) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "adapter_page_count");
  }
  InitializeRequest request{.max_pages = max_pages, .remote_access = remote_access};
  RNICD_ASSIGN_OR_RETURN(request.busy, Acquire());
  {
    // Before the charge, so that a region in the wrong state is reported as such and not as a quota that is used up.
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(CheckInitializable());
  }
  RNICD_ASSIGN_OR_RETURN(request.pages, Charge::Take(ledger, Resource::kFastRegisterPages, max_pages));
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckInitializable());
  state_ = State::kInitializing;
  return request;
}

// The request's hold is released after the state is set: a waiting close must find the region at rest.
absl::Status MemoryRegion::FinishInitialize(InitializeRequest request, const absl::Status& start) {
  if (!start.ok()) {
    Undo(request);
    return start;
  }
  auto device = domain_->device().CreateFastRegion(request.max_pages, request.remote_access);
  if (!device.ok()) {
    Undo(request);
    return device.status();
  }
  MutexLock lock(mutex_);
  fast_ = {.device = *std::move(device), .max_pages = request.max_pages, .remote_access = request.remote_access};
  fast_pages_ = std::move(request.pages);
  state_ = State::kInitialized;
  return absl::OkStatus();
}

void MemoryRegion::Undo(InitializeRequest& request) {
  request.pages.Refund();
  ReturnTo(State::kCreated);
}

absl::StatusOr<MemoryRegion::FastTarget> MemoryRegion::ForFastRegister() const {
  if (!fast_register_) {
    return MakeError(ErrorReason::REGION_WRONG_KIND, "mr_id");
  }
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckInitialized());
  return fast_;
}

void MemoryRegion::RecordFastRegistration(const FastRegistration& registration) {
  MutexLock lock(mutex_);
  last_fast_ = registration;
}

absl::StatusOr<MemoryRegion::BindTarget> MemoryRegion::ForBind() const {
  if (fast_register_) {
    return MakeError(ErrorReason::REGION_WRONG_KIND, "mr_id");
  }
  MutexLock lock(mutex_);
  if (state_ != State::kRegistered) {
    return MakeError(ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  }
  return BindTarget{.device = device_, .base = range_.base, .length = range_.length, .rights = rights_};
}

void MemoryRegion::FillFastView(RegionView& view) const {
  if (fast_.device == nullptr || !fast_.device->registered()) {
    return;
  }
  view.state = "registered";
  view.base = last_fast_.base;
  view.length = last_fast_.length;
  view.pages = last_fast_.pages;
  view.page_bytes = kNdkPageBytes;
  view.rights = last_fast_.rights;
}

}  // namespace rnicd::core
