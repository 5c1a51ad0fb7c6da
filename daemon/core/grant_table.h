#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/secret.h"
#include "base/strong_id.h"
#include "daemon/core/caller.h"
#include "daemon/core/tenant.h"
#include "daemon/core/workload.h"

namespace rnicd::core {

inline constexpr size_t kMaxGrants = 4096;
inline constexpr size_t kMaxGrantNameBytes = 63;
// Of all grants together, so that whoever makes them cannot fill the daemon's memory.
inline constexpr size_t kMaxGrantDevices = 100'000;

// A grant that an earlier daemon made: its id, and what is left of its secret.
struct GrantRenewal {
  // Not 0.
  GrantId id;
  SecretDigest digest;
};

// What a grant allows, as its maker says.
struct GrantTerms {
  // 1 to kMaxGrantNameBytes characters: letters, digits, "-", "_", "." and "/". The tenant is "grant/" and this.
  std::string name;
  // Only callers of this pod may present it; empty: whoever has the secret.
  std::string pod_uid;
  // When it is over: nobody may present it any more, and the sessions it carries end. 0: not before it is revoked.
  std::chrono::milliseconds lifetime{0};
  TenantLimits limits;
  // Nothing for a new id and a new secret.
  std::optional<GrantRenewal> renewal;
  // What the device plugin gave to the container that the grant is for; null for none.
  std::shared_ptr<const DeviceSet> devices;
};

// A grant as it is handed out, once. The secret is kept nowhere; that of a renewed grant is not known, and empty here.
struct IssuedGrant {
  GrantId id;
  std::string secret;
};

// A grant as an operator may see it.
struct GrantView {
  GrantId id;
  std::string pod_uid;
  Instant created;
  std::optional<Instant> expiry;
  std::shared_ptr<Tenant> tenant;
  // Null for none.
  std::shared_ptr<const DeviceSet> devices;
};

// Grants: secrets that make whoever presents one a tenant of its own.
// Threads: safe.
class GrantTable {
 public:
  // Both outlive the table.
  GrantTable(RandomSource& random, const Clock& clock) : random_(random), clock_(clock) {}

  // `make` makes the tenant. Errors: FIELD_OUT_OF_RANGE, GRANT_NAME_TAKEN (of "name", or of the id in
  // "renewal.grant_id"), QUOTA_GRANTS (of "devices" when there are too many of these).
  using MakeTenant = std::function<std::shared_ptr<Tenant>(GrantId)>;
  absl::StatusOr<IssuedGrant> Create(const GrantTerms& terms, const MakeTenant& make);
  // Errors: GRANT_REFUSED, whatever is wrong with it.
  absl::StatusOr<std::shared_ptr<Tenant>> Present(std::string_view secret, const Caller& caller) const;
  // The tenant is closed; its sessions are for the caller to end. Errors: GRANT_NOT_FOUND.
  absl::StatusOr<std::shared_ptr<Tenant>> Revoke(GrantId id);
  // Likewise for all that are over.
  std::vector<std::shared_ptr<Tenant>> TakeExpired();
  // In the order of their ids.
  std::vector<GrantView> List() const;

 private:
  struct Entry {
    SecretDigest digest;
    // As in its terms.
    std::string name;
    GrantView view;
  };

  absl::Status CheckFree(const GrantTerms& terms) const RNICD_REQUIRES(mutex_);
  GrantId NewId() RNICD_REQUIRES(mutex_);
  // Takes the grant out of all tables, and closes its tenant.
  std::shared_ptr<Tenant> TakeOut(std::map<GrantId, Entry>::iterator entry) RNICD_REQUIRES(mutex_);
  bool IsOver(const GrantView& view) const { return view.expiry.has_value() && *view.expiry <= clock_.Now(); }

  RandomSource& random_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::map<GrantId, Entry> grants_ RNICD_GUARDED_BY(mutex_);
  // Of all grants.
  std::set<std::string> names_ RNICD_GUARDED_BY(mutex_);
  size_t devices_ RNICD_GUARDED_BY(mutex_) = 0;
};

}  // namespace rnicd::core
