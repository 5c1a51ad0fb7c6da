#include "provider/verbs/verbs_memory_region.h"

#include <utility>

#include "base/status.h"

namespace rnicd::provider {

absl::StatusOr<std::unique_ptr<VerbsMemoryRegion>> VerbsMemoryRegion::Register(std::shared_ptr<VerbsDomain> domain,
                                                                               const DeviceRegistration& request) {
  const int bind = domain->device().engines().windows ? IBV_ACCESS_MW_BIND : 0;
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<Registration> registration,
                         Registration::Make(domain, request.base, request.runs, AccessFlags(request.rights) | bind));
  std::unique_ptr<VerbsMemoryRegion> region(new VerbsMemoryRegion(std::move(domain), std::move(registration), request));
  region->PublishLocalToken();
  return region;
}

absl::StatusOr<std::unique_ptr<VerbsMemoryRegion>> VerbsMemoryRegion::RegisterDmabuf(
    std::shared_ptr<VerbsDomain> domain, const DeviceDmabufRegistration& request) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<Registration> registration, Registration::MakeOfDmabuf(domain, request));
  const DeviceRegistration place = {
      .base = request.base, .length = request.length, .runs = {}, .rights = request.rights};
  std::unique_ptr<VerbsMemoryRegion> region(new VerbsMemoryRegion(std::move(domain), std::move(registration), place));
  region->PublishLocalToken();
  return region;
}

void VerbsMemoryRegion::PublishLocalToken() {
  domain_->SetLocal(registration_->lkey(),
                    {.lkey = registration_->lkey(), .base = base_, .length = length_, .rights = rights_, .owner = {}});
}

VerbsMemoryRegion::VerbsMemoryRegion(std::shared_ptr<VerbsDomain> domain, std::unique_ptr<Registration> registration,
                                     const DeviceRegistration& request)
    : domain_(std::move(domain)),
      registration_(std::move(registration)),
      base_(request.base),
      length_(request.length),
      rights_(request.rights),
      runs_(request.runs.begin(), request.runs.end()) {}

VerbsMemoryRegion::~VerbsMemoryRegion() {
  if (registration_->live()) {
    domain_->RemoveLocal(registration_->lkey());
  }
}

absl::Status VerbsMemoryRegion::Deregister() {
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
  // Remove the token first: a card may assign the same key to the next registration.
  domain_->RemoveLocal(registration_->lkey());
  absl::Status ended = registration_->End();
  if (!ended.ok()) {
    PublishLocalToken();
    MutexLock lock(mutex_);
    refuses_windows_ = false;
  }
  return ended;
}

bool VerbsMemoryRegion::AddWindow() {
  MutexLock lock(mutex_);
  windows_ += refuses_windows_ ? 0 : 1;
  return !refuses_windows_;
}

void VerbsMemoryRegion::RemoveWindow() {
  MutexLock lock(mutex_);
  --windows_;
}

}  // namespace rnicd::provider
