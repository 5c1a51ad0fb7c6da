#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/strong_id.h"
#include "daemon/core/tenant/door_use.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/pinned_pages.h"
#include "daemon/core/tenant/policy.h"
#include "daemon/core/tenant/rate_limiter.h"
#include "daemon/core/tenant/tenant_tally.h"
#include "daemon/core/tenant/workload.h"

namespace rnicd::core {

// A set of sessions that share limits, grouped by a rule of the policy or by a grant.
// Lifetime: shared by its sessions, its connections and the directory.
// Threads:  safe.
class Tenant {
 public:
  // `grant` is 0 for a tenant of the policy; `rule` is the policy's name for it, or empty. `number` identifies the
  // tenant where work is scheduled round robin. `clock` outlives the tenant. Without a `tally` the tenant has a private
  // one.
  Tenant(std::string name, std::string rule, GrantId grant, uint64_t number, const TenantLimits& limits,
         const std::shared_ptr<Ledger>& node, const Clock& clock, std::shared_ptr<TenantTally> tally = nullptr);

  // "storage", "guests/uid=1000", "guests/uid=1000/pod=...", "grant/pod-7".
  const std::string& name() const { return name_; }
  const std::string& rule() const { return rule_; }
  GrantId grant() const { return grant_; }
  uint64_t number() const { return number_; }
  const std::shared_ptr<Ledger>& ledger() const { return ledger_; }
  const std::shared_ptr<PinnedFiles>& pins() const { return pins_; }
  RateLimiter& rate() { return rate_; }
  const std::shared_ptr<TenantTally>& tally() const { return tally_; }
  // The door of its grant.
  DoorUse& door() { return door_; }

  // Session limits apply to sessions opened from now on; limits of the tenant itself apply at once.
  void SetLimits(const TenantLimits& limits);
  TenantLimits limits() const;
  // Never null.
  std::shared_ptr<const ConnectionRules> connections() const;

  // Never null.
  std::shared_ptr<const Workload> workload() const;
  void SetWorkload(WorkloadName name, std::shared_ptr<const DeviceSet> devices);

  // True when the tenant holds nothing, and a new one would have the same rate left.
  bool idle() const { return ledger_->empty() && rate_.idle(); }

  // Refuses all further sessions.
  void Close() { closed_.store(true); }
  bool closed() const { return closed_.load(); }
  // Refuses further sessions of processes outside this pod. Of several calls the first counts, and an empty UID is
  // none.
  void BindTo(const std::string& pod_uid);
  // UID of the pod; empty if none.
  std::string pod_uid() const;
  // Whether a process of this pod may open a session; the UID of a process outside pods is empty.
  bool Admits(std::string_view pod_uid) const;

 private:
  const std::string name_;
  const std::string rule_;
  const GrantId grant_;
  const uint64_t number_;
  const std::shared_ptr<Ledger> ledger_;
  const std::shared_ptr<PinnedFiles> pins_;
  RateLimiter rate_;
  const std::shared_ptr<TenantTally> tally_;
  DoorUse door_{*tally_};
  std::atomic<bool> closed_{false};
  mutable Mutex mutex_;
  TenantLimits limits_ RNICD_GUARDED_BY(mutex_);
  std::shared_ptr<const ConnectionRules> connections_ RNICD_GUARDED_BY(mutex_);
  std::shared_ptr<const Workload> workload_ RNICD_GUARDED_BY(mutex_);
  std::string pod_uid_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
