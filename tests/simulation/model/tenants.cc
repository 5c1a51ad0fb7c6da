#include "tests/simulation/model/tenants.h"

#include <algorithm>
#include <utility>

namespace rnicd::simulation {
namespace {

std::shared_ptr<Tenant> NewTenant(std::string name, std::string rule, const core::TenantLimits& limits) {
  return std::make_shared<Tenant>(
      Tenant{.name = std::move(name), .rule = std::move(rule), .limits = limits, .rate = Bucket(limits.tenant_rate)});
}

std::string NameFor(const core::TenantRule& rule, const core::Caller& caller) {
  const std::string of_pod = caller.container.pod_uid.empty() ? "" : "/pod=" + caller.container.pod_uid;
  const std::string inside =
      of_pod.empty() && !caller.container.id.empty() ? "/container=" + caller.container.id : of_pod;
  std::string of_uid = rule.name + "/uid=" + std::to_string(caller.uid) + inside;
  switch (rule.sharing) {
    case core::Sharing::kOne:
      return rule.name;
    case core::Sharing::kEachUid:
      return of_uid;
    case core::Sharing::kEachPod:
      return of_pod.empty() ? of_uid : rule.name + of_pod;
  }
  return "";
}

}  // namespace

bool Tenants::Holds(const core::Matcher& matcher, const core::Caller& caller) const {
  const auto pod = std::find_if(pods_.begin(), pods_.end(),
                                [&caller](const core::PodFacts& each) { return each.uid == caller.container.pod_uid; });
  const auto has_label = [&](const auto& wanted) {
    return pod != pods_.end() && pod->labels.contains(wanted.first) && pod->labels.at(wanted.first) == wanted.second;
  };
  // One result for each condition that is set.
  std::vector<bool> held;
  if (matcher.uid.has_value()) {
    held.push_back(*matcher.uid == caller.uid);
  }
  if (matcher.gid.has_value()) {
    held.push_back(*matcher.gid == caller.gid);
  }
  if (matcher.pod_uid.has_value()) {
    held.push_back(*matcher.pod_uid == caller.container.pod_uid);
  }
  if (matcher.pod_namespace.has_value()) {
    held.push_back(pod != pods_.end() && pod->namespace_name == *matcher.pod_namespace);
  }
  for (const auto& wanted : matcher.pod_labels) {
    held.push_back(has_label(wanted));
  }
  return !held.empty() && std::find(held.begin(), held.end(), false) == held.end();
}

const core::TenantRule* Tenants::RuleNamed(const std::string& name) const {
  for (const core::TenantRule& rule : policy_.tenants) {
    if (rule.name == name) {
      return &rule;
    }
  }
  return nullptr;
}

const core::TenantRule* Tenants::RuleFor(const core::Caller& caller) const {
  for (const core::TenantRule& rule : policy_.tenants) {
    for (const core::Matcher& matcher : rule.matches) {
      if (Holds(matcher, caller)) {
        return &rule;
      }
    }
  }
  return RuleNamed(policy_.default_tenant);
}

std::shared_ptr<Tenant> Tenants::Of(const core::Caller& caller, const std::string& secret, Instant now, Refusals& why) {
  if (!secret.empty()) {
    for (const auto& [id, grant] : grants_) {
      const bool over = grant.expiry.has_value() && now >= *grant.expiry;
      const bool for_caller = grant.pod_uid.empty() || grant.pod_uid == caller.container.pod_uid;
      if (grant.secret == secret && for_caller && !over) {
        return grant.tenant;
      }
    }
    why.If(true, ErrorReason::GRANT_REFUSED);
    return nullptr;
  }
  const core::TenantRule* rule = RuleFor(caller);
  if (rule == nullptr) {
    why.If(true, ErrorReason::TENANT_REFUSED);
    return nullptr;
  }
  std::shared_ptr<Tenant>& tenant = of_policy_[NameFor(*rule, caller)];
  if (tenant == nullptr) {
    tenant = NewTenant(NameFor(*rule, caller), rule->name, rule->limits);
  }
  return tenant;
}

void Tenants::SetPolicy(core::Policy policy, Instant now) {
  policy_ = std::move(policy);
  for (const auto& [name, tenant] : of_policy_) {
    if (const core::TenantRule* rule = RuleNamed(tenant->rule); rule != nullptr) {
      tenant->limits = rule->limits;
      tenant->rate.Set(rule->limits.tenant_rate, now);
    }
  }
}

void Tenants::CheckName(const std::string& name, Refusals& why) const {
  const bool taken = std::any_of(grants_.begin(), grants_.end(),
                                 [&](const auto& each) { return each.second.tenant->name == "grant/" + name; });
  why.If(taken, ErrorReason::GRANT_NAME_TAKEN);
}

void Tenants::AddGrant(const core::GrantTerms& terms, const core::IssuedGrant& issued, uint64_t number, Instant now) {
  Grant grant{.number = number,
              .id = issued.id,
              .secret = issued.secret,
              .pod_uid = terms.pod_uid,
              .tenant = NewTenant("grant/" + terms.name, "", terms.limits)};
  if (terms.lifetime.count() != 0) {
    grant.expiry = now + terms.lifetime;
  }
  grants_[issued.id] = std::move(grant);
}

std::shared_ptr<Tenant> Tenants::RemoveGrant(GrantId id) {
  std::shared_ptr<Tenant> tenant = grants_.at(id).tenant;
  grants_.erase(id);
  return tenant;
}

std::vector<GrantId> Tenants::OverAt(Instant now) const {
  std::vector<GrantId> over;
  for (const auto& [id, grant] : grants_) {
    if (grant.expiry.has_value() && now >= *grant.expiry) {
      over.push_back(id);
    }
  }
  return over;
}

void Tenants::Forget(Instant now, const std::function<bool(const Tenant&)>& is_used) {
  std::erase_if(of_policy_, [&](const auto& each) { return !is_used(*each.second) && each.second->rate.EmptyAt(now); });
}

std::map<std::string, std::shared_ptr<Tenant>> Tenants::All() const {
  std::map<std::string, std::shared_ptr<Tenant>> all = of_policy_;
  for (const auto& [id, grant] : grants_) {
    all[grant.tenant->name] = grant.tenant;
  }
  return all;
}

}  // namespace rnicd::simulation
