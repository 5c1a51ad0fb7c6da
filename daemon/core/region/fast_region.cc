#include "daemon/core/region/fast_region.h"

#include <string_view>
#include <utility>

#include "base/status.h"

namespace rnicd::core {

absl::StatusOr<std::shared_ptr<FastRegion>> FastRegion::Create(std::shared_ptr<ProtectionDomain> domain,
                                                               std::shared_ptr<Charge> charge) {
  RNICD_ASSIGN_OR_RETURN(Kept<ProtectionDomain> kept, Kept<ProtectionDomain>::Of(std::move(domain)));
  return std::shared_ptr<FastRegion>(new FastRegion(kIsFast, std::move(kept), std::move(charge)));
}

absl::Status FastRegion::CheckInitializable() const {
  switch (state_) {
    case State::kCreated:
      return absl::OkStatus();
    case State::kInitialized:
      return MakeError(ErrorReason::REGION_ALREADY_INITIALIZED, "mr_id");
    default:
      return MakeError(ErrorReason::REGION_BUSY, "mr_id");
  }
}

absl::Status FastRegion::CheckInitialized() const {
  return state_ == State::kInitialized ? absl::OkStatus() : MakeError(ErrorReason::REGION_NOT_INITIALIZED, "mr_id");
}

absl::StatusOr<FastRegion::InitializeRequest> FastRegion::BeginInitialize(uint32_t max_pages, bool remote_access,
                                                                          const std::shared_ptr<Ledger>& ledger) {
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
absl::Status FastRegion::FinishInitialize(InitializeRequest& request, const absl::Status& start) {
  if (!start.ok()) {
    Undo(request);
    return start;
  }
  auto device = domain()->device().CreateFastRegion(request.max_pages, request.remote_access);
  if (!device.ok()) {
    Undo(request);
    return device.status();
  }
  MutexLock lock(mutex_);
  target_ = {.device = *std::move(device), .max_pages = request.max_pages, .remote_access = request.remote_access};
  pages_ = std::move(request.pages);
  state_ = State::kInitialized;
  return absl::OkStatus();
}

void FastRegion::Undo(InitializeRequest& request) {
  request.pages.Refund();
  MutexLock lock(mutex_);
  state_ = State::kCreated;
}

absl::StatusOr<FastRegion::Target> FastRegion::ForFastRegister() const {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckInitialized());
  return target_;
}

void FastRegion::RecordFastRegistration(const FastRegistration& registration) {
  MutexLock lock(mutex_);
  last_ = registration;
}

absl::StatusOr<LocalToken> FastRegion::GetLocalToken() const {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckInitialized());
  return target_.device->local_token();
}

absl::StatusOr<RemoteToken> FastRegion::GetRemoteToken() const {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckInitialized());
  return target_.device->remote_token();
}

RegionView FastRegion::View() const {
  static constexpr std::string_view kStateNames[] = {"created", "initializing", "initialized"};
  RegionView view{.adapter_name = domain()->adapter().name(), .fast_register = true};
  MutexLock lock(mutex_);
  view.state = kStateNames[static_cast<size_t>(state_)];
  if (target_.device == nullptr || !target_.device->registered()) {
    return view;
  }
  view.state = "registered";
  view.base = last_.base;
  view.length = last_.length;
  view.pages = last_.pages;
  view.page_bytes = kNdkPageBytes;
  view.rights = last_.rights;
  return view;
}

void FastRegion::AddTo(Holdings& holdings) const { holdings.AddRegion(domain()->adapter().name(), kIsFast); }

// A thread that found the region before its id was removed may still ask for a token; there is none from here on.
void FastRegion::Finalize() {
  std::shared_ptr<provider::DeviceFastRegion> device;
  {
    MutexLock lock(mutex_);
    device = std::move(target_.device);
    state_ = State::kInitializing;
  }
  if (device != nullptr) {
    device->Retire();
    device.reset();
  }
  MutexLock lock(mutex_);
  pages_.Refund();
  state_ = State::kCreated;
}

}  // namespace rnicd::core
