#pragma once

#include <atomic>
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
#include "base/secrets/random.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/grant_table.h"
#include "daemon/core/tenant/policy.h"
#include "daemon/core/tenant/tenant.h"
#include "daemon/core/tenant/tenant_tally.h"
#include "daemon/core/tenant/workload.h"

namespace rnicd::core {

// Default number of tenants that are counted under their own names.
inline constexpr size_t kNamedTenants = 100;

// Maps a caller to its tenant. Holds the policy in force, the known pods, the grants, and the tenants made from them.
// Threads: safe. Its lock is taken when connections and sessions are opened, never by a registration.
class TenantDirectory {
 public:
  // `node` counts for all tenants together. `random` and `clock` outlive the directory. `most_named`: see TallyBook.
  TenantDirectory(Policy policy, std::shared_ptr<Ledger> node, RandomSource& random, const Clock& clock,
                  size_t most_named = kNamedTenants);

  // Selects by the caller's door if it came through one, else by the grant if there is one, else by the caller's kernel
  // credentials. Errors: GRANT_REFUSED, also for a secret at a door; TENANT_REFUSED, also for a caller that the policy
  // keeps from doors.
  absl::StatusOr<std::shared_ptr<Tenant>> TenantOf(const Caller& caller, std::string_view grant);
  // The caller's role at the operators' door; empty when it is refused. `is_trusted`: an operator where no rule says
  // otherwise, as root and the daemon's own user are.
  std::optional<Role> RoleOf(const Caller& caller, bool is_trusted) const;

  // Live tenants whose rule still exists get its limits at once; the others keep theirs until they are removed.
  // Sessions keep the limits that they were opened with.
  void SetPolicy(Policy policy);
  // Records why the policy file was refused when it was last read; the policy in force stays. SetPolicy clears it.
  void SetPolicyError(std::string error);
  // Empty if the policy in force is that of the file.
  std::string policy_error() const;
  // Replaces all known pods of the node. Sessions stay with their tenants; the workloads of the tenants are updated.
  void SetPods(std::vector<PodFacts> pods);
  // The pods of the last SetPods.
  std::vector<PodFacts> Pods() const;
  // Time of the last SetPods; empty when it was never called.
  std::optional<Instant> pods_updated() const;

  // Errors: as GrantTable.
  absl::StatusOr<IssuedGrant> CreateGrant(const GrantTerms& terms);
  absl::StatusOr<std::shared_ptr<Tenant>> RevokeGrant(GrantId id) { return grants_.Revoke(id); }
  // As GrantTable::Bind, but binds to nothing while no process in a pod was seen: neither `caller`, who asks for it,
  // nor one that TenantOf was asked for.
  absl::StatusOr<std::shared_ptr<Tenant>> BindGrant(GrantId id, const std::string& pod_uid, const Caller& caller);
  std::vector<GrantView> Grants() const { return grants_.List(); }

  // What a newer generation of the daemon gets; see GrantTable.
  std::vector<HandedGrant> HandOverGrants() { return grants_.HandOver(); }
  void TakeBackGrants() { grants_.TakeBack(); }
  // The tenant of the policy that another generation has, made if it is not here; it has no limits while the policy has
  // no such rule. `pod_uid`: of the pod that it stands for, or empty.
  std::shared_ptr<Tenant> Named(const std::string& name, const std::string& rule, const std::string& pod_uid);
  // UID of the pod that a tenant of the policy stands for; empty if none.
  std::string PodUidOf(const Tenant& tenant) const;

  // Closes expired grants and forgets unused tenants. Must be called periodically. Returns the tenants of those grants.
  std::vector<std::shared_ptr<Tenant>> Sweep();
  // Tenants with connections, sessions, a grant, or memory that is still charged to them, by name. Grants that have
  // ended come behind the one that has their name now.
  std::vector<std::shared_ptr<Tenant>> Tenants() const;
  // Tallies of all tenants, including those that no longer exist.
  std::vector<std::shared_ptr<const TenantTally>> Tallies() const { return tallies_.All(); }

 private:
  struct OfPolicy {
    std::shared_ptr<Tenant> tenant;
    // UID of the pod this tenant stands for; empty if none.
    std::string pod_uid;
  };

  const std::shared_ptr<Tenant>& Make(const std::string& name, const std::string& rule, const TenantLimits& limits,
                                      std::string pod_uid) RNICD_REQUIRES(mutex_);
  // Returns whether a process in a pod was seen, now or before.
  bool SeesPods(const Caller& caller);
  const PodFacts* PodWithUid(const std::string& uid) const RNICD_REQUIRES(mutex_);
  const PodFacts* PodOf(const Caller& caller) const RNICD_REQUIRES(mutex_);
  // Updates the workloads of live tenants.
  void JoinPods(const std::vector<GrantView>& grants) RNICD_EXCLUDES(mutex_);
  void Join(const OfPolicy& of_policy) const RNICD_REQUIRES(mutex_);
  absl::StatusOr<std::shared_ptr<Tenant>> TenantOfDoor(const Caller& caller) const;
  const TenantRule* RuleFor(const Caller& caller) const RNICD_REQUIRES(mutex_);
  const TenantRule* RuleNamed(std::string_view name) const RNICD_REQUIRES(mutex_);

  const std::shared_ptr<Ledger> node_;
  const Clock& clock_;
  TallyBook tallies_;
  GrantTable grants_;
  std::atomic<bool> pods_seen_{false};
  mutable Mutex mutex_;
  Policy policy_ RNICD_GUARDED_BY(mutex_);
  std::string policy_error_ RNICD_GUARDED_BY(mutex_);
  std::optional<Instant> pods_updated_ RNICD_GUARDED_BY(mutex_);
  std::vector<PodFacts> pods_ RNICD_GUARDED_BY(mutex_);
  // Index in pods_ of each pod that has a UID.
  std::map<std::string, size_t> pods_by_uid_ RNICD_GUARDED_BY(mutex_);
  DeviceHolders holders_ RNICD_GUARDED_BY(mutex_);
  // Tenants of the policy, by name; kept while they are in use or their rate limit still counts.
  std::map<std::string, OfPolicy> tenants_ RNICD_GUARDED_BY(mutex_);
  uint64_t next_number_ RNICD_GUARDED_BY(mutex_) = 1;
};

}  // namespace rnicd::core
