#include "daemon/core/region/session_domains.h"

#include <memory>
#include <utility>

#include "base/status.h"

namespace rnicd::core {

absl::StatusOr<ProtectionDomainId> SessionDomains::Create(AdapterId id) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Adapter> adapter, FindIn(adapters_, id, "adapter_id"));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kProtectionDomains));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<ProtectionDomain> domain,
                         ProtectionDomain::Create(std::move(adapter), std::move(charge)));
  return table_.Insert(std::move(domain));
}

MaybePending<> SessionDomains::Close(ProtectionDomainId id, PendingChoice choice, const Done<>& done) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<ProtectionDomain> domain, FindIn(table_, id, "pd_id"));
  return CloseThenRemove(id, *domain, ReportClose(RequestKind::kClosePd, id, choice, *domain, done));
}

absl::StatusOr<LocalToken> SessionDomains::GetPrivilegedMemoryRegionToken(ProtectionDomainId id) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<ProtectionDomain> domain, FindIn(table_, id, "pd_id"));
  return domain->privileged_token();
}

}  // namespace rnicd::core
