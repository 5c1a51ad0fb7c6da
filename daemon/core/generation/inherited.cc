#include "daemon/core/generation/inherited.h"

#include <algorithm>
#include <chrono>

#include "base/status.h"

namespace rnicd::core {
namespace {

// No time in a daemon's life is longer; sums with it do not wrap.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 366 * 100);

bool IsTime(std::chrono::milliseconds time) { return time.count() >= 0 && time <= kLongest; }

}  // namespace

absl::Status Inherited::TakeGrants(const Inheritance& inheritance) {
  // Before the grants, which are joined with them.
  if (!inheritance.pods.empty() && !node_.tenants.pods_updated().has_value()) {
    node_.tenants.SetPods(inheritance.pods);
  }
  for (const HandedGrant& grant : inheritance.grants) {
    if (!IsTime(grant.lifetime) || !grant.renewal.has_value() || !IsTime(grant.renewal->age)) {
      return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "grants");
    }
    absl::Status created = node_.tenants.CreateGrant(grant).status();
    // From another generation, which has it of the same one.
    if (!created.ok() && ErrorInfoOf(created).reason != ErrorReason::GRANT_NAME_TAKEN) {
      return created;
    }
  }
  return absl::OkStatus();
}

std::shared_ptr<Tenant> Inherited::TenantOf(const HeldUse& use, const Grants& grants) const {
  if (use.grant == GrantId{}) {
    return node_.tenants.Named(use.tenant, use.rule, use.pod_uid);
  }
  const auto found = grants.find(use.grant);
  return found == grants.end() ? nullptr : found->second;
}

absl::Status Inherited::Take(const Inheritance& inheritance) {
  RNICD_RETURN_IF_ERROR(TakeGrants(inheritance));
  Grants grants;
  for (const GrantView& grant : node_.tenants.Grants()) {
    grants.emplace(grant.id, grant.tenant);
  }
  MutexLock lock(mutex_);
  for (const HeldUse& use : inheritance.held) {
    TakeUse(use, grants);
  }
  processes_.insert(inheritance.processes.begin(), inheritance.processes.end());
  return absl::OkStatus();
}

void Inherited::TakeUse(const HeldUse& use, const Grants& grants) {
  const bool is_node = use.tenant.empty();
  const std::shared_ptr<Tenant> tenant = is_node ? nullptr : TenantOf(use, grants);
  if (!is_node && tenant == nullptr) {
    return;
  }
  const auto [entry, added] = owners_.try_emplace({use.grant, use.tenant});
  Owner& owner = entry->second;
  if (added) {
    owner = {.use = use, .tenant = tenant, .ledger = is_node ? node_.ledger : tenant->ledger()};
    owner.use.held = {};
  }
  for (size_t place = 0; place < kResourceCount; ++place) {
    uint64_t& held = owner.use.held[place];
    held += owner.ledger->AddForeign(static_cast<Resource>(place), std::max(use.held[place], held) - held);
  }
}

Inheritance Inherited::Left() const {
  Inheritance left;
  MutexLock lock(mutex_);
  left.processes.assign(processes_.begin(), processes_.end());
  for (const auto& [key, owner] : owners_) {
    left.held.push_back(owner.use);
  }
  return left;
}

bool Inherited::Owns(const ProcessKey& process) const {
  MutexLock lock(mutex_);
  return processes_.contains(process);
}

void Inherited::Gone(const ProcessKey& process) {
  MutexLock lock(mutex_);
  processes_.erase(process);
}

HeldUse Inherited::Grow(const HeldUse& wanted) {
  HeldUse lease = wanted;
  lease.held = {};
  MutexLock lock(mutex_);
  const auto found = owners_.find({wanted.grant, wanted.tenant});
  if (found == owners_.end()) {
    return lease;
  }
  Owner& owner = found->second;
  for (size_t place = 0; place < kResourceCount; ++place) {
    uint64_t& held = owner.use.held[place];
    held += owner.ledger->TakeForeign(static_cast<Resource>(place), std::max(wanted.held[place], held) - held);
  }
  return owner.use;
}

void Inherited::Shrink(const HeldUse& shrunk) {
  MutexLock lock(mutex_);
  const auto found = owners_.find({shrunk.grant, shrunk.tenant});
  if (found == owners_.end()) {
    return;
  }
  Owner& owner = found->second;
  for (size_t place = 0; place < kResourceCount; ++place) {
    uint64_t& held = owner.use.held[place];
    const uint64_t less = held - std::min(held, shrunk.held[place]);
    owner.ledger->GiveForeign(static_cast<Resource>(place), less);
    held -= less;
  }
}

void Inherited::Drop() {
  MutexLock lock(mutex_);
  for (const auto& [key, owner] : owners_) {
    for (size_t place = 0; place < kResourceCount; ++place) {
      owner.ledger->GiveForeign(static_cast<Resource>(place), owner.use.held[place]);
    }
  }
  owners_.clear();
  processes_.clear();
}

}  // namespace rnicd::core
