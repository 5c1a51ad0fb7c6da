#include "provider/verbs/memory/verbs_memory_region.h"

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
    : EngineMemoryRegion(request),
      domain_(std::move(domain)),
      registration_(std::move(registration)),
      length_(request.length) {}

VerbsMemoryRegion::~VerbsMemoryRegion() {
  if (registration_->live()) {
    domain_->RemoveLocal(registration_->lkey());
  }
}

absl::Status VerbsMemoryRegion::End() {
  if (!registration_->live()) {
    return absl::OkStatus();
  }
  // Remove the token first: a card may assign the same key to the next registration.
  domain_->RemoveLocal(registration_->lkey());
  absl::Status ended = registration_->End();
  if (!ended.ok()) {
    PublishLocalToken();
  }
  return ended;
}

}  // namespace rnicd::provider
