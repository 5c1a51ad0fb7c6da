#include "daemon/core/generation/retirement.h"

#include <memory>
#include <utility>

namespace rnicd::core {

Inheritance Retirement::Begin(std::function<void(const ProcessKey&)> on_gone) {
  Inheritance inheritance;
  MutexLock lock(mutex_);
  // First, so that who holds nothing now never will.
  inheritance.processes = registry_.HandOver(std::move(on_gone));
  inheritance.grants = node_.tenants.HandOverGrants();
  inheritance.pods = node_.tenants.Pods();
  shares_.clear();
  shares_.emplace_back(HeldUse{}, node_.ledger, nullptr);
  for (const std::shared_ptr<Tenant>& tenant : node_.tenants.Tenants()) {
    HeldUse of{.tenant = tenant->name(),
               .rule = tenant->rule(),
               .pod_uid = node_.tenants.PodUidOf(*tenant),
               .grant = tenant->grant()};
    shares_.emplace_back(std::move(of), tenant->ledger(), tenant);
  }
  ForgetOver();
  for (const Share& share : shares_) {
    inheritance.held.push_back(share.told());
  }
  return inheritance;
}

void Retirement::Cancel() {
  MutexLock lock(mutex_);
  for (Share& share : shares_) {
    share.Lift();
  }
  shares_.clear();
  node_.tenants.TakeBackGrants();
  registry_.TakeBack();
}

Retirement::Changes Retirement::Tick() {
  Changes changes;
  MutexLock lock(mutex_);
  for (Share& share : shares_) {
    const Share::Moves moves = share.Review();
    if (moves.shrunk) {
      changes.shrunk.push_back(share.told());
    }
    if (moves.wanted) {
      changes.wanted.push_back(share.told());
    }
  }
  ForgetOver();
  return changes;
}

// Nothing is added for them, as they have no session.
void Retirement::ForgetOver() {
  std::erase_if(shares_, [](Share& share) {
    const bool over = share.over();
    if (over) {
      share.Lift();
    }
    return over;
  });
}

void Retirement::Granted(const HeldUse& lease) {
  MutexLock lock(mutex_);
  for (Share& share : shares_) {
    if (share.IsOf(lease)) {
      share.Grant(lease);
    }
  }
}

void Retirement::Narrow(GrantId grant, const std::string& pod_uid) {
  for (const GrantView& view : node_.tenants.Grants()) {
    if (view.id == grant) {
      pod_uid.empty() ? view.tenant->Close() : view.tenant->BindTo(pod_uid);
      registry_.EndRefusedBy(*view.tenant, EndCause::kGrantRevoked);
    }
  }
}

}  // namespace rnicd::core
