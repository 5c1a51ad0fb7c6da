#include "daemon/core/tenant_directory.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace rnicd::core {
namespace {

std::string TenantName(const TenantRule& rule, const Caller& caller) {
  if (rule.sharing == Sharing::kEachPod && !caller.container.pod_uid.empty()) {
    return rule.name + "/pod=" + caller.container.pod_uid;
  }
  return rule.sharing == Sharing::kOne ? rule.name : rule.name + "/uid=" + std::to_string(caller.uid);
}

}  // namespace

TenantDirectory::TenantDirectory(Policy policy, std::shared_ptr<Ledger> node, RandomSource& random, const Clock& clock,
                                 size_t most_named)
    : node_(std::move(node)), clock_(clock), tallies_(most_named), grants_(random, clock), policy_(std::move(policy)) {}

const PodFacts* TenantDirectory::PodOf(const Caller& caller) const {
  const std::string& uid = caller.container.pod_uid;
  const auto found = uid.empty() ? pods_.end() : pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

const TenantRule* TenantDirectory::RuleNamed(std::string_view name) const {
  const auto has_name = [name](const TenantRule& rule) { return rule.name == name; };
  const auto found = std::find_if(policy_.tenants.begin(), policy_.tenants.end(), has_name);
  return found == policy_.tenants.end() ? nullptr : &*found;
}

const TenantRule* TenantDirectory::RuleFor(const Caller& caller) const {
  const PodFacts* const pod = PodOf(caller);
  const auto matches = [&](const Matcher& matcher) { return matcher.Matches(caller, pod); };
  for (const TenantRule& rule : policy_.tenants) {
    if (std::any_of(rule.matches.begin(), rule.matches.end(), matches)) {
      return &rule;
    }
  }
  return RuleNamed(policy_.default_tenant);
}

absl::StatusOr<std::shared_ptr<Tenant>> TenantDirectory::TenantOf(const Caller& caller, std::string_view grant) {
  if (!grant.empty()) {
    return grants_.Present(grant, caller);
  }
  MutexLock lock(mutex_);
  const TenantRule* const rule = RuleFor(caller);
  if (rule == nullptr) {
    return MakeError(ErrorReason::TENANT_REFUSED);
  }
  std::string name = TenantName(*rule, caller);
  std::shared_ptr<Tenant>& tenant = tenants_[name];
  if (tenant == nullptr) {
    tenant = std::make_shared<Tenant>(name, rule->name, GrantId{}, next_number_++, rule->limits, node_, clock_,
                                      tallies_.Open(name));
  }
  return tenant;
}

std::optional<Role> TenantDirectory::RoleOf(const Caller& caller, uid_t own_uid) const {
  MutexLock lock(mutex_);
  const PodFacts* const pod = PodOf(caller);
  for (const RoleRule& rule : policy_.roles) {
    if (rule.match.Matches(caller, pod)) {
      return rule.role;
    }
  }
  return caller.uid == 0 || caller.uid == own_uid ? std::optional(Role::kOperator) : std::nullopt;
}

void TenantDirectory::SetPolicy(Policy policy) {
  MutexLock lock(mutex_);
  policy_ = std::move(policy);
  for (const auto& [name, tenant] : tenants_) {
    const TenantRule* const rule = RuleNamed(tenant->rule());
    if (rule != nullptr) {
      tenant->SetLimits(rule->limits);
    }
  }
}

void TenantDirectory::SetPods(std::vector<PodFacts> pods) {
  MutexLock lock(mutex_);
  pods_updated_ = clock_.Now();
  pods_.clear();
  for (PodFacts& pod : pods) {
    std::string uid = pod.uid;
    pods_.insert_or_assign(std::move(uid), std::move(pod));
  }
}

std::optional<Instant> TenantDirectory::pods_updated() const {
  MutexLock lock(mutex_);
  return pods_updated_;
}

std::vector<PodFacts> TenantDirectory::Pods() const {
  std::vector<PodFacts> pods;
  MutexLock lock(mutex_);
  pods.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) {
    pods.push_back(pod);
  }
  return pods;
}

absl::StatusOr<IssuedGrant> TenantDirectory::CreateGrant(const GrantTerms& terms) {
  return grants_.Create(terms, [&](GrantId id) {
    MutexLock lock(mutex_);
    const std::string name = "grant/" + terms.name;
    return std::make_shared<Tenant>(name, "", id, next_number_++, terms.limits, node_, clock_, tallies_.Open(name));
  });
}

// Only the directory can hand out another reference to a tenant that nobody else holds.
std::vector<std::shared_ptr<Tenant>> TenantDirectory::Sweep() {
  {
    MutexLock lock(mutex_);
    std::erase_if(tenants_, [](const auto& entry) { return entry.second.use_count() == 1 && entry.second->idle(); });
  }
  return grants_.TakeExpired();
}

std::vector<std::shared_ptr<Tenant>> TenantDirectory::Tenants() const {
  std::vector<std::shared_ptr<Tenant>> tenants;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, tenant] : tenants_) {
      tenants.push_back(tenant);
    }
  }
  for (const GrantView& grant : grants_.List()) {
    tenants.push_back(grant.tenant);
  }
  std::sort(tenants.begin(), tenants.end(), [](const auto& a, const auto& b) { return a->name() < b->name(); });
  return tenants;
}

}  // namespace rnicd::core
