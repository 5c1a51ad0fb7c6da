#include "daemon/core/region/ordinary_region.h"

#include <string>
#include <utility>

#include "base/status.h"
#include "base/system/this_process.h"

namespace rnicd::core {

absl::StatusOr<std::shared_ptr<OrdinaryRegion>> OrdinaryRegion::Create(std::shared_ptr<ProtectionDomain> domain,
                                                                       std::shared_ptr<Charge> charge,
                                                                       std::shared_ptr<TenantTally> tally,
                                                                       Observer& observer, const Clock& clock) {
  RNICD_ASSIGN_OR_RETURN(Kept<ProtectionDomain> kept, Kept<ProtectionDomain>::Of(std::move(domain)));
  return std::shared_ptr<OrdinaryRegion>(
      new OrdinaryRegion(std::move(kept), std::move(charge), std::move(tally), observer, clock));
}

OrdinaryRegion::OrdinaryRegion(Kept<ProtectionDomain> domain, std::shared_ptr<Charge> charge,
                               std::shared_ptr<TenantTally> tally, Observer& observer, const Clock& clock)
    : MemoryRegion(kIsFast, std::move(domain), std::move(charge)),
      tally_(std::move(tally)),
      observer_(observer),
      clock_(clock) {}

absl::Status OrdinaryRegion::CheckRegistrable() const {
  switch (state_) {
    case State::kCreated:
      return absl::OkStatus();
    case State::kRegistered:
      return MakeError(ErrorReason::REGION_ALREADY_REGISTERED, "mr_id");
    default:
      return MakeError(ErrorReason::REGION_BUSY, "mr_id");
  }
}

absl::StatusOr<OrdinaryRegion::RegisterRequest> OrdinaryRegion::BeginRegister(MappedRange range, AccessRights rights,
                                                                              const std::shared_ptr<Ledger>& ledger) {
  RegisterRequest request{.range = std::move(range), .rights = rights, .started = clock_.Now()};
  if (request.range.length > domain()->max_registration_size()) {
    return MakeError(ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT, "length");
  }
  RNICD_ASSIGN_OR_RETURN(request.busy, Acquire());
  {
    // Before the charge, so that a region in the wrong state is reported as such and not as a quota that is used up.
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(CheckRegistrable());
  }
  RNICD_ASSIGN_OR_RETURN(request.pinned,
                         PinCharge::Take(ledger, std::move(request.range.page_runs), request.range.pages));
  // The request outlives this lock, so that a refusal releases its charge and its hold without it.
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckRegistrable());
  state_ = State::kRegistering;
  return request;
}

// Adds to the card's error the name of the adapter, and the hint that the kernel may lack the operation.
absl::StatusOr<std::unique_ptr<provider::DeviceMemoryRegion>> OrdinaryRegion::CallDevice(
    const RegisterRequest& request) const {
  const MappedRange& range = request.range;
  if (!range.dmabuf.has_value()) {
    return domain()->device().RegisterMemory(
        {.base = range.base, .length = range.length, .runs = range.runs, .rights = request.rights});
  }
  auto device = domain()->device().RegisterDmabuf({.base = range.base,
                                                   .length = range.length,
                                                   .file = range.dmabuf->file,
                                                   .offset = range.dmabuf->offset,
                                                   .rights = request.rights});
  if (!FailedWith(device.status(), ErrorReason::DEVICE_NOT_CAPABLE)) {
    return device;
  }
  return MakeErrorWithDetail(
      ErrorInfo{.reason = ErrorReason::DEVICE_NOT_CAPABLE, .field = "mdl_chain[0].memory_id"},
      "adapter " + domain()->adapter().name() + " on kernel " + KernelRelease() + " cannot register this dma-buf");
}

absl::StatusOr<Registration> OrdinaryRegion::FinishRegister(RegisterRequest& request, const absl::Status& start) {
  if (!start.ok()) {
    Undo(request);
    tally_->CountRegistration(false);
    observer_.Report(RegistrationEnded{.status = start});
    return start;
  }
  auto device = CallDevice(request);
  const uint64_t bytes = request.range.length;
  if (!device.ok()) {
    Undo(request);
  }
  const absl::StatusOr<Registration> registration =
      device.ok() ? absl::StatusOr<Registration>(Publish(request, *std::move(device))) : device.status();
  tally_->CountRegistration(registration.ok());
  observer_.Report(RegistrationEnded{.status = registration.status(),
                                     .bytes = bytes,
                                     .reached_device = true,
                                     .duration = clock_.Now() - request.started});
  if (registration.ok()) {
    observer_.Report(TokensIssued{.local = 1, .remote = 1});
  }
  return registration;
}

// Before the failure is reported; the hold stays, so that a waiting close comes after it.
void OrdinaryRegion::Undo(RegisterRequest& request) {
  request.range = {};
  request.pinned.Refund();
  ReturnTo(State::kCreated);
}

Registration OrdinaryRegion::Publish(RegisterRequest& request, std::unique_ptr<provider::DeviceMemoryRegion> device) {
  MutexLock lock(mutex_);
  device_ = std::move(device);
  range_ = std::move(request.range);
  rights_ = request.rights;
  pinned_ = std::move(request.pinned);
  state_ = State::kRegistered;
  return Registration{.base_address = range_.base,
                      .length = range_.length,
                      .local_token = device_->local_token(),
                      .remote_token = device_->remote_token()};
}

absl::StatusOr<OrdinaryRegion::DeregisterRequest> OrdinaryRegion::BeginDeregister() {
  DeregisterRequest request;
  RNICD_ASSIGN_OR_RETURN(request.busy, Acquire());
  MutexLock lock(mutex_);
  switch (state_) {
    case State::kRegistered:
      state_ = State::kDeregistering;
      return request;
    case State::kCreated:
      return MakeError(ErrorReason::REGION_NOT_REGISTERED, "mr_id");
    default:
      return MakeError(ErrorReason::REGION_BUSY, "mr_id");
  }
}

// The request's hold is released after the state is set: a waiting close must find the region at rest.
absl::Status OrdinaryRegion::FinishDeregister(DeregisterRequest& /*request*/, const absl::Status& start) {
  if (!start.ok()) {
    ReturnTo(State::kRegistered);
    return start;
  }
  provider::DeviceMemoryRegion* device = nullptr;
  {
    MutexLock lock(mutex_);
    device = device_.get();
  }
  absl::Status status = device->Deregister();
  {
    MutexLock lock(mutex_);
    if (status.ok()) {
      Forget();
    }
    state_ = status.ok() ? State::kCreated : State::kRegistered;
  }
  tally_->CountDeregistration(status.ok());
  observer_.Report(DeregistrationEnded{status});
  if (status.ok()) {
    observer_.Report(TokensRevoked{.pairs = 1, .cause = "deregister"});
  }
  return status;
}

absl::Status OrdinaryRegion::CheckRegistered() const {
  return state_ == State::kRegistered ? absl::OkStatus() : MakeError(ErrorReason::REGION_NOT_REGISTERED, "mr_id");
}

absl::StatusOr<OrdinaryRegion::BindTarget> OrdinaryRegion::ForBind() const {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckRegistered());
  return BindTarget{.device = device_, .base = range_.base, .length = range_.length, .rights = rights_};
}

absl::StatusOr<LocalToken> OrdinaryRegion::GetLocalToken() const {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckRegistered());
  return device_->local_token();
}

absl::StatusOr<RemoteToken> OrdinaryRegion::GetRemoteToken() const {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckRegistered());
  return device_->remote_token();
}

uint64_t OrdinaryRegion::registered_length() const {
  MutexLock lock(mutex_);
  return state_ == State::kRegistered ? range_.length : 0;
}

bool OrdinaryRegion::is_over_dmabuf() const {
  MutexLock lock(mutex_);
  return state_ == State::kRegistered && range_.dmabuf.has_value();
}

void OrdinaryRegion::SetCloseCause(std::string_view cause) {
  MutexLock lock(mutex_);
  close_cause_ = cause;
}

bool OrdinaryRegion::deregister_failed() const {
  MutexLock lock(mutex_);
  return deregister_failed_;
}

RegionView OrdinaryRegion::View() const {
  static constexpr std::string_view kStateNames[] = {"created", "registering", "registered", "deregistering"};
  RegionView view{.adapter_name = domain()->adapter().name()};
  MutexLock lock(mutex_);
  view.state = kStateNames[static_cast<size_t>(state_)];
  if (device_ != nullptr) {
    view.base = range_.base;
    view.length = range_.length;
    view.pages = range_.pages;
    view.page_bytes = range_.page_bytes;
    view.rights = rights_;
  }
  return view;
}

void OrdinaryRegion::AddTo(Holdings& holdings) const {
  const std::string& adapter = domain()->adapter().name();
  holdings.AddRegion(adapter, kIsFast);
  MutexLock lock(mutex_);
  if (device_ != nullptr) {
    holdings.AddPages(adapter, PageUse::kRegion, range_.page_bytes, range_.pages);
  }
}

void OrdinaryRegion::ReturnTo(State state) {
  MutexLock lock(mutex_);
  state_ = state;
}

// Order matters: the card releases first, then the memory may be released, then the pages count as free.
void OrdinaryRegion::Forget() {
  device_.reset();
  range_ = {};
  pinned_.Refund();
}

// A region that is closed while registered is deregistered here. Destroying the device object releases the card's side
// even where Deregister failed.
void OrdinaryRegion::Finalize() {
  std::shared_ptr<provider::DeviceMemoryRegion> device;
  std::string_view cause;
  {
    MutexLock lock(mutex_);
    device = std::move(device_);
    cause = close_cause_;
    // A thread that found the region before its id was removed may still read it; the region has no token any more.
    state_ = State::kDeregistering;
  }
  absl::Status deregistered;
  if (device != nullptr) {
    deregistered = device->Deregister();
    device.reset();
    tally_->CountDeregistration(deregistered.ok());
    observer_.Report(DeregistrationEnded{deregistered});
    observer_.Report(TokensRevoked{.pairs = 1, .cause = cause});
  }
  {
    MutexLock lock(mutex_);
    deregister_failed_ = !deregistered.ok();
    Forget();
    state_ = State::kCreated;
  }
}

}  // namespace rnicd::core
