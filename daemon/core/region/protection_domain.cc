#include "daemon/core/region/protection_domain.h"

#include "base/status.h"

namespace rnicd::core {

absl::StatusOr<std::shared_ptr<ProtectionDomain>> ProtectionDomain::Create(std::shared_ptr<Adapter> adapter,
                                                                           std::shared_ptr<Charge> charge) {
  RNICD_ASSIGN_OR_RETURN(Kept<Adapter> kept, Adapter::Keep(std::move(adapter)));
  std::shared_ptr<ProtectionDomain> domain(new ProtectionDomain(std::move(kept), std::move(charge)));
  RNICD_ASSIGN_OR_RETURN(domain->device_, domain->adapter_->device().CreateProtectionDomain());
  domain->privileged_token_ = domain->device_->privileged_token();
  return domain;
}

}  // namespace rnicd::core
