#include "provider/networkdirect/memory/nd_memory_region.h"

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
    : EngineMemoryRegion(request),
      domain_(std::move(domain)),
      registration_(std::move(registration)),
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

absl::Status NdMemoryRegion::End() {
  if (!registration_->live()) {
    return absl::OkStatus();
  }
  PublishTokens(nullptr);
  absl::Status ended = registration_->End();
  if (!ended.ok()) {
    PublishTokens(registration_->RangeAt(base_, rights_));
  }
  return ended;
}

}  // namespace rnicd::provider
