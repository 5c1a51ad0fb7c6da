#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "daemon/core/caller.h"
#include "daemon/core/grant_table.h"
#include "daemon/core/policy.h"
#include "daemon/core/tenant.h"
#include "daemon/core/tenant_tally.h"
#include "daemon/core/workload.h"

namespace rnicd::core {

// Tenants with a name of their own in counts, unless said otherwise.
inline constexpr size_t kNamedTenants = 100;

// Knows which tenant a caller is: the policy in force, the pods that were made known, the grants, and the tenants that
// came of them.
// Threads: safe. Its lock is taken when connections and sessions are opened, never by a registration.
class TenantDirectory {
 public:
  // `node` counts for all tenants together. `random` and `clock` outlive the directory. `most_named`: see TallyBook.
  TenantDirectory(Policy policy, std::shared_ptr<Ledger> node, RandomSource& random, const Clock& clock,
                  size_t most_named = kNamedTenants);

  // By the grant if there is one, else by what the kernel says of the caller. Errors: GRANT_REFUSED, TENANT_REFUSED.
  absl::StatusOr<std::shared_ptr<Tenant>> TenantOf(const Caller& caller, std::string_view grant);
  // What the caller may be on the operator's socket; nothing when it may not come in. `own_uid`: the daemon's.
  std::optional<Role> RoleOf(const Caller& caller, uid_t own_uid) const;

  // Live tenants whose rule is still there get its limits at once; the others keep what they had until they are gone.
  // Sessions keep the limits that they were opened with.
  void SetPolicy(Policy policy);
  // All pods of the node that are known from now on. Sessions stay with their tenants; tenants learn their workload.
  void SetPods(std::vector<PodFacts> pods);
  // As SetPods was told.
  std::vector<PodFacts> Pods() const;
  // When SetPods was called last; nothing when it never was.
  std::optional<Instant> pods_updated() const;

  // Errors: as GrantTable.
  absl::StatusOr<IssuedGrant> CreateGrant(const GrantTerms& terms);
  absl::StatusOr<std::shared_ptr<Tenant>> RevokeGrant(GrantId id) { return grants_.Revoke(id); }
  std::vector<GrantView> Grants() const { return grants_.List(); }

  // The grants that are over, closed, and tenants that nobody uses are forgotten. To be called now and then.
  std::vector<std::shared_ptr<Tenant>> Sweep();
  // Those with connections, sessions or a grant, by name.
  std::vector<std::shared_ptr<Tenant>> Tenants() const;
  // Those of tenants that are gone as well.
  std::vector<std::shared_ptr<const TenantTally>> Tallies() const { return tallies_.All(); }

 private:
  struct OfPolicy {
    std::shared_ptr<Tenant> tenant;
    // Of the pod that the tenant is; empty when it is none.
    std::string pod_uid;
  };

  const PodFacts* PodWithUid(const std::string& uid) const RNICD_REQUIRES(mutex_);
  const PodFacts* PodOf(const Caller& caller) const RNICD_REQUIRES(mutex_);
  // For the tenants that live.
  void JoinPods(const std::vector<GrantView>& grants) RNICD_EXCLUDES(mutex_);
  void Join(const OfPolicy& of_policy) const RNICD_REQUIRES(mutex_);
  const TenantRule* RuleFor(const Caller& caller) const RNICD_REQUIRES(mutex_);
  const TenantRule* RuleNamed(std::string_view name) const RNICD_REQUIRES(mutex_);

  const std::shared_ptr<Ledger> node_;
  const Clock& clock_;
  TallyBook tallies_;
  GrantTable grants_;
  mutable Mutex mutex_;
  Policy policy_ RNICD_GUARDED_BY(mutex_);
  std::optional<Instant> pods_updated_ RNICD_GUARDED_BY(mutex_);
  std::vector<PodFacts> pods_ RNICD_GUARDED_BY(mutex_);
  // Of those with a UID the place in pods_.
  std::map<std::string, size_t> pods_by_uid_ RNICD_GUARDED_BY(mutex_);
  DeviceHolders holders_ RNICD_GUARDED_BY(mutex_);
  // Of the policy, by name; kept while somebody else holds them or their rate would be forgotten too early.
  std::map<std::string, OfPolicy> tenants_ RNICD_GUARDED_BY(mutex_);
  uint64_t next_number_ RNICD_GUARDED_BY(mutex_) = 1;
};

}  // namespace rnicd::core
