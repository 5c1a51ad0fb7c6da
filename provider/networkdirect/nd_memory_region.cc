#include "provider/networkdirect/nd_memory_region.h"

#include <utility>

#include "base/status.h"

namespace rnicd::provider {

absl::StatusOr<std::unique_ptr<NdMemoryRegion>> NdMemoryRegion::Register(std::shared_ptr<NdDomain> domain,
                                                                         const DeviceRegistration& request) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<NdRegistration> registration,
                         NdRegistration::Make(domain, request.runs, NdAccessFlags(request.rights)));
  std::unique_ptr<NdMemoryRegion> region(new NdMemoryRegion(std::move(domain), std::move(registration), request));
  region->PublishTokens(region->registration_->RangeAt(region->base_, region->rights_));
  return region;
}

NdMemoryRegion::NdMemoryRegion(std::shared_ptr<NdDomain> domain, std::unique_ptr<NdRegistration> registration,
                               const DeviceRegistration& request)
    : domain_(std::move(domain)),
      registration_(std::move(registration)),
      base_(request.base),
      rights_(request.rights),
      runs_(request.runs.begin(), request.runs.end()),
      local_token_(domain_->local_tokens().Reserve()),
      remote_token_(domain_->remote_tokens().Reserve()) {}

NdMemoryRegion::~NdMemoryRegion() {
  domain_->local_tokens().Remove(local_token_);
  domain_->remote_tokens().Remove(remote_token_);
}

void NdMemoryRegion::PublishTokens(const std::shared_ptr<const CardRange>& range) {
  domain_->local_tokens().Set(local_token_, {.range = range, .owner = {}});
  domain_->remote_tokens().Set(remote_token_, {.range = range, .owner = {}});
}

absl::Status NdMemoryRegion::Deregister() {
  {
    MutexLock lock(mutex_);
    if (windows_ > 0) {
      return MakeError(ErrorReason::REGION_HAS_WINDOWS);
    }
    refuses_windows_ = true;
  }
  if (!registration_->live()) {
    return absl::OkStatus();
  }
  PublishTokens(nullptr);
  absl::Status ended = registration_->End();
  if (!ended.ok()) {
    PublishTokens(registration_->RangeAt(base_, rights_));
    MutexLock lock(mutex_);
    refuses_windows_ = false;
  }
  return ended;
}

bool NdMemoryRegion::AddWindow() {
  MutexLock lock(mutex_);
  windows_ += refuses_windows_ ? 0 : 1;
  return !refuses_windows_;
}

void NdMemoryRegion::RemoveWindow() {
  MutexLock lock(mutex_);
  --windows_;
}

}  // namespace rnicd::provider
