#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/core/tenant/policy.h"
#include "daemon/core/tenant/tenant_directory.h"
#include "tests/simulation/model/bucket.h"
#include "tests/simulation/world/refusals.h"

namespace rnicd::simulation {

// Callers that share limits.
struct Tenant {
  std::string name;
  // Name of the policy's rule; empty for a grant's tenant.
  std::string rule;
  core::TenantLimits limits;
  Bucket rate{core::Rate{}};
};

// A grant that can be presented, or has expired and was not yet swept.
struct Grant {
  uint64_t number = 0;
  GrantId id;
  std::string secret;
  std::string pod_uid;
  std::optional<Instant> expiry;
  std::shared_ptr<Tenant> tenant;
};

// Reference model of the mapping from callers to tenants: evaluates the policy directly for every query.
class Tenants {
 public:
  explicit Tenants(core::Policy policy) : policy_(std::move(policy)) {}

  // The caller's tenant; null, with a reason, if it has none.
  std::shared_ptr<Tenant> Of(const core::Caller& caller, const std::string& secret, Instant now, Refusals& why);
  void SetPolicy(core::Policy policy, Instant now);
  const core::Policy& policy() const { return policy_; }
  void SetPods(std::vector<core::PodFacts> pods) { pods_ = std::move(pods); }

  // Adds a refusal if the name is taken.
  void CheckName(const std::string& name, Refusals& why) const;
  void AddGrant(const core::GrantTerms& terms, const core::IssuedGrant& issued, uint64_t number, Instant now);
  // Removes the grant and returns its tenant.
  std::shared_ptr<Tenant> RemoveGrant(GrantId id);
  // Grants in the order of their ids.
  const std::map<GrantId, Grant>& grants() const { return grants_; }
  std::vector<GrantId> OverAt(Instant now) const;

  // Forgets tenants that are unused and have an empty bucket.
  void Forget(Instant now, const std::function<bool(const Tenant&)>& is_used);
  // All tenants by name.
  std::map<std::string, std::shared_ptr<Tenant>> All() const;

 private:
  const core::TenantRule* RuleNamed(const std::string& name) const;
  const core::TenantRule* RuleFor(const core::Caller& caller) const;
  bool Holds(const core::Matcher& matcher, const core::Caller& caller) const;

  core::Policy policy_;
  std::vector<core::PodFacts> pods_;
  std::map<std::string, std::shared_ptr<Tenant>> of_policy_;
  std::map<GrantId, Grant> grants_;
};

}  // namespace rnicd::simulation
