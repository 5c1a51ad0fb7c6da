#include "daemon/core/tenant/tenant_directory.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/status.h"

namespace rnicd::core {
namespace {

// The UID of the pod this tenant stands for, or for one uid of; empty when the rule shares otherwise.
std::string TenantPodUid(const TenantRule& rule, const Caller& caller) {
  return rule.sharing == Sharing::kOne ? std::string() : caller.container.pod_uid;
}

// What the uid is distinguished by: the pod, else the container, else nothing. Only these names are the node's (ADR
// 0019): root in a container can make control groups below its own. A container of a pod does not count, although its
// name is the node's too: it gets another one each time that it ends and is restarted, so that a client could leave
// memory behind with the limits of the old one, and get the whole limits again.
std::string PlaceOf(const Container& container) {
  if (!container.pod_uid.empty()) {
    return "/pod=" + container.pod_uid;
  }
  return container.id.empty() ? std::string() : "/container=" + container.id;
}

std::string TenantName(const TenantRule& rule, const Caller& caller) {
  switch (rule.sharing) {
    case Sharing::kOne:
      return rule.name;
    case Sharing::kEachPod:
      if (!caller.container.pod_uid.empty()) {
        return rule.name + PlaceOf(caller.container);
      }
      break;
    case Sharing::kEachUid:
      break;
  }
  const std::string user = caller.sid.empty() ? "/uid=" + std::to_string(caller.uid) : "/sid=" + caller.sid;
  return rule.name + user + PlaceOf(caller.container);
}

}  // namespace

TenantDirectory::TenantDirectory(Policy policy, std::shared_ptr<Ledger> node, RandomSource& random, const Clock& clock,
                                 size_t most_named)
    : node_(std::move(node)), clock_(clock), tallies_(most_named), grants_(random, clock), policy_(std::move(policy)) {}

const PodFacts* TenantDirectory::PodWithUid(const std::string& uid) const {
  const auto found = pods_by_uid_.find(uid);
  return found == pods_by_uid_.end() ? nullptr : &pods_[found->second];
}

const PodFacts* TenantDirectory::PodOf(const Caller& caller) const { return PodWithUid(caller.container.pod_uid); }

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

bool TenantDirectory::SeesPods(const Caller& caller) {
  if (!caller.container.pod_uid.empty()) {
    pods_seen_.store(true);
  }
  return pods_seen_.load();
}

absl::StatusOr<std::shared_ptr<Tenant>> TenantDirectory::TenantOf(const Caller& caller, std::string_view grant) {
  (void)SeesPods(caller);
  if (caller.door != nullptr) {
    return grant.empty() ? TenantOfDoor(caller) : MakeError(ErrorReason::GRANT_REFUSED, "grant");
  }
  if (!grant.empty()) {
    return grants_.Present(grant, caller);
  }
  MutexLock lock(mutex_);
  const TenantRule* const rule = RuleFor(caller);
  if (rule == nullptr) {
    return MakeError(ErrorReason::TENANT_REFUSED);
  }
  return Make(TenantName(*rule, caller), rule->name, rule->limits, TenantPodUid(*rule, caller));
}

const std::shared_ptr<Tenant>& TenantDirectory::Make(const std::string& name, const std::string& rule,
                                                     const TenantLimits& limits, std::string pod_uid) {
  OfPolicy& of_policy = tenants_[name];
  if (of_policy.tenant == nullptr) {
    of_policy = {.tenant = std::make_shared<Tenant>(name, rule, GrantId{}, next_number_++, limits, node_, clock_,
                                                    tallies_.Open(name)),
                 .pod_uid = std::move(pod_uid)};
    Join(of_policy);
  }
  return of_policy.tenant;
}

std::shared_ptr<Tenant> TenantDirectory::Named(const std::string& name, const std::string& rule,
                                               const std::string& pod_uid) {
  // The other generation has seen a process in it.
  if (!pod_uid.empty()) {
    pods_seen_.store(true);
  }
  MutexLock lock(mutex_);
  const TenantRule* const found = RuleNamed(rule);
  return Make(name, rule, found == nullptr ? TenantLimits{} : found->limits, pod_uid);
}

std::string TenantDirectory::PodUidOf(const Tenant& tenant) const {
  MutexLock lock(mutex_);
  const auto found = tenants_.find(tenant.name());
  return found == tenants_.end() || found->second.tenant.get() != &tenant ? std::string() : found->second.pod_uid;
}

absl::StatusOr<std::shared_ptr<Tenant>> TenantDirectory::TenantOfDoor(const Caller& caller) const {
  {
    MutexLock lock(mutex_);
    const PodFacts* const pod = PodOf(caller);
    const auto matches = [&](const Matcher& matcher) { return matcher.Matches(caller, pod); };
    if (!policy_.doors.empty() && std::none_of(policy_.doors.begin(), policy_.doors.end(), matches)) {
      return MakeError(ErrorReason::TENANT_REFUSED);
    }
  }
  return grants_.Enter(caller);
}

std::optional<Role> TenantDirectory::RoleOf(const Caller& caller, bool is_trusted) const {
  MutexLock lock(mutex_);
  const PodFacts* const pod = PodOf(caller);
  for (const RoleRule& rule : policy_.roles) {
    if (rule.match.Matches(caller, pod)) {
      return rule.role;
    }
  }
  return is_trusted ? std::optional(Role::kOperator) : std::nullopt;
}

void TenantDirectory::SetPolicy(Policy policy) {
  MutexLock lock(mutex_);
  policy_ = std::move(policy);
  policy_error_.clear();
  for (const auto& [name, of_policy] : tenants_) {
    const TenantRule* const rule = RuleNamed(of_policy.tenant->rule());
    if (rule != nullptr) {
      of_policy.tenant->SetLimits(rule->limits);
    }
  }
}

void TenantDirectory::SetPolicyError(std::string error) {
  MutexLock lock(mutex_);
  policy_error_ = std::move(error);
}

std::string TenantDirectory::policy_error() const {
  MutexLock lock(mutex_);
  return policy_error_;
}

void TenantDirectory::SetPods(std::vector<PodFacts> pods) {
  DeviceHolders holders(pods);
  {
    MutexLock lock(mutex_);
    pods_updated_ = clock_.Now();
    pods_ = std::move(pods);
    holders_ = std::move(holders);
    pods_by_uid_.clear();
    for (size_t place = 0; place < pods_.size(); ++place) {
      if (!pods_[place].uid.empty()) {
        pods_by_uid_.emplace(pods_[place].uid, place);
      }
    }
  }
  JoinPods(grants_.List());
}

// Joins with the current pods, from any caller: of two concurrent calls of SetPods the later one counts. A grant that
// is not in the list yet was joined with them when it was made.
void TenantDirectory::JoinPods(const std::vector<GrantView>& grants) {
  MutexLock lock(mutex_);
  for (const GrantView& grant : grants) {
    if (grant.devices != nullptr) {
      grant.tenant->SetWorkload(holders_.HolderOf(*grant.devices), grant.devices);
    }
  }
  for (const auto& [name, of_policy] : tenants_) {
    Join(of_policy);
  }
}

void TenantDirectory::Join(const OfPolicy& of_policy) const {
  const PodFacts* const pod = PodWithUid(of_policy.pod_uid);
  of_policy.tenant->SetWorkload(
      pod == nullptr ? WorkloadName{} : WorkloadName{.namespace_name = pod->namespace_name, .pod = pod->name}, nullptr);
}

std::optional<Instant> TenantDirectory::pods_updated() const {
  MutexLock lock(mutex_);
  return pods_updated_;
}

std::vector<PodFacts> TenantDirectory::Pods() const {
  MutexLock lock(mutex_);
  return pods_;
}

absl::StatusOr<IssuedGrant> TenantDirectory::CreateGrant(const GrantTerms& terms) {
  return grants_.Create(terms, [&](GrantId id) {
    MutexLock lock(mutex_);
    const std::string name = "grant/" + terms.name;
    const auto tenant =
        std::make_shared<Tenant>(name, "", id, next_number_++, terms.limits, node_, clock_, tallies_.Open(name));
    if (terms.devices != nullptr) {
      tenant->SetWorkload(holders_.HolderOf(*terms.devices), terms.devices);
    }
    return tenant;
  });
}

absl::StatusOr<std::shared_ptr<Tenant>> TenantDirectory::BindGrant(GrantId id, const std::string& pod_uid,
                                                                   const Caller& caller) {
  return grants_.Bind(id, SeesPods(caller) ? pod_uid : std::string());
}

// Only the directory can create another reference to a tenant that has no other owner.
std::vector<std::shared_ptr<Tenant>> TenantDirectory::Sweep() {
  {
    MutexLock lock(mutex_);
    std::erase_if(tenants_, [](const auto& entry) {
      const std::shared_ptr<Tenant>& tenant = entry.second.tenant;
      return tenant.use_count() == 1 && tenant->idle();
    });
  }
  return grants_.TakeExpired();
}

std::vector<std::shared_ptr<Tenant>> TenantDirectory::Tenants() const {
  std::vector<std::shared_ptr<Tenant>> tenants = grants_.Tenants();
  {
    MutexLock lock(mutex_);
    for (const auto& [name, of_policy] : tenants_) {
      tenants.push_back(of_policy.tenant);
    }
  }
  const auto key = [](const Tenant& tenant) { return std::tuple(std::string_view(tenant.name()), -tenant.number()); };
  std::sort(tenants.begin(), tenants.end(), [key](const auto& a, const auto& b) { return key(*a) < key(*b); });
  return tenants;
}

}  // namespace rnicd::core
