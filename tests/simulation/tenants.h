#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/core/policy.h"
#include "daemon/core/tenant_directory.h"
#include "tests/simulation/bucket.h"
#include "tests/simulation/refusals.h"

namespace rnicd::simulation {

// Those who share limits.
struct Tenant {
  std::string name;
  // Of the policy; empty for a grant's.
  std::string rule;
  core::TenantLimits limits;
  Bucket rate{core::Rate{}};
};

// A grant that can be presented, or is over and was not swept away.
struct Grant {
  uint64_t number = 0;
  GrantId id;
  std::string secret;
  std::string pod_uid;
  std::optional<Instant> expiry;
  std::shared_ptr<Tenant> tenant;
};

// Who is which tenant, in the plainest way: every question is answered from the policy's own words.
class Tenants {
 public:
  explicit Tenants(core::Policy policy) : policy_(std::move(policy)) {}

  // Null with a reason when the caller is none.
  std::shared_ptr<Tenant> Of(const core::Caller& caller, const std::string& secret, Instant now, Refusals& why);
  void SetPolicy(core::Policy policy, Instant now);
  const core::Policy& policy() const { return policy_; }
  void SetPods(std::vector<core::PodFacts> pods) { pods_ = std::move(pods); }

  // Refuses a name that is taken.
  void CheckName(const std::string& name, Refusals& why) const;
  void AddGrant(const core::GrantTerms& terms, const core::IssuedGrant& issued, uint64_t number, Instant now);
  // The tenant of a grant that is no longer.
  std::shared_ptr<Tenant> RemoveGrant(GrantId id);
  // In the order of their ids.
  const std::map<GrantId, Grant>& grants() const { return grants_; }
  std::vector<GrantId> OverAt(Instant now) const;

  // Forgets those that are not used and have nothing in their bucket.
  void Forget(Instant now, const std::function<bool(const Tenant&)>& is_used);
  // By name.
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
