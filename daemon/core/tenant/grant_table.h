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
#include "base/secrets/random.h"
#include "base/secrets/secret.h"
#include "base/strong_id.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/tenant.h"
#include "daemon/core/tenant/workload.h"

namespace rnicd::core {

inline constexpr size_t kMaxGrants = 4096;
inline constexpr size_t kMaxGrantNameBytes = 63;
// Limit over all grants together, so that no issuer of grants can fill the daemon's memory.
inline constexpr size_t kMaxGrantDevices = 100'000;

// Identity of a grant issued by an earlier daemon: its id, and what is stored of its secret.
struct GrantRenewal {
  // ID of the grant; not 0.
  GrantId id;
  // Empty for a grant with a door.
  std::optional<SecretDigest> digest;
  // Time since it was issued; 0 where that is not known.
  std::chrono::milliseconds age{0};
};

// The terms of a grant, as its issuer requests them.
struct GrantTerms {
  // Name of the grant: 1 to kMaxGrantNameBytes characters from letters, digits, "-", "_", "." and "/". The tenant is
  // "grant/" plus this name.
  std::string name;
  // UID of the only pod whose processes may use the grant; empty: any caller with the secret, or at the door, may.
  std::string pod_uid;
  // Time until the grant expires: it is then refused, and its sessions end. 0: valid until revoked.
  std::chrono::milliseconds lifetime{0};
  TenantLimits limits;
  // Identity to restore; empty for a new id and a new secret.
  std::optional<GrantRenewal> renewal;
  // Devices that the device plugin allocated to the grant's container; null if none.
  std::shared_ptr<const DeviceSet> devices;
  // Its bearers come through a door; it has no secret.
  bool door = false;
};

// A grant as one generation of the daemon gives it to the next: with its renewal, and the lifetime that is left.
using HandedGrant = GrantTerms;

// A grant as returned to its issuer, once. The secret is stored nowhere; that of a renewed grant is unknown, and empty
// here, as that of a grant with a door.
struct IssuedGrant {
  GrantId id;
  std::string secret;
  std::shared_ptr<Tenant> tenant;
};

// A grant as shown to an operator.
struct GrantView {
  GrantId id;
  Instant created;
  std::optional<Instant> expiry;
  std::shared_ptr<Tenant> tenant;
  // Devices the grant covers; null if none.
  std::shared_ptr<const DeviceSet> devices;
};

// Grants: secrets and doors that make their bearer a tenant of its own.
// Threads: safe.
class GrantTable {
 public:
  // Both outlive the table.
  GrantTable(RandomSource& random, const Clock& clock) : random_(random), clock_(clock) {}

  // `make` creates the tenant. Errors: FIELD_OUT_OF_RANGE, GRANT_NAME_TAKEN (field "name", or "renewal.grant_id" when
  // the id is taken), QUOTA_GRANTS (field "devices" when there are too many of these), DAEMON_HANDED_OVER.
  using MakeTenant = std::function<std::shared_ptr<Tenant>(GrantId)>;
  absl::StatusOr<IssuedGrant> Create(const GrantTerms& terms, const MakeTenant& make);
  // Errors: GRANT_REFUSED, for every kind of mismatch.
  absl::StatusOr<std::shared_ptr<Tenant>> Present(std::string_view secret, const Caller& caller) const;
  // The tenant of the door that the caller came through. Errors: GRANT_REFUSED.
  absl::StatusOr<std::shared_ptr<Tenant>> Enter(const Caller& caller) const;
  // Closes the grant's tenant; the caller must end its sessions, and its door. Errors: GRANT_NOT_FOUND,
  // DAEMON_HANDED_OVER.
  absl::StatusOr<std::shared_ptr<Tenant>> Revoke(GrantId id);
  // Binds the grant's tenant as Tenant::BindTo does; the caller must end the sessions that it refuses now. Errors:
  // GRANT_NOT_FOUND, DAEMON_HANDED_OVER.
  absl::StatusOr<std::shared_ptr<Tenant>> Bind(GrantId id, const std::string& pod_uid);
  // Closes the tenants of all expired grants and returns them; the caller must end their sessions. Forgets the tenants
  // of grants that have ended and are charged with nothing any more.
  std::vector<std::shared_ptr<Tenant>> TakeExpired();
  // All grants, in the order of their ids.
  std::vector<GrantView> List() const;
  // The tenants of all grants, and of those that have ended while something is charged to them: a session that is
  // ending, or memory that some process still has. These are closed, and may share their name with a new grant.
  std::vector<std::shared_ptr<Tenant>> Tenants() const;
  // All grants, for a newer generation of the daemon. From now on none is made, revoked or bound here: the newer one
  // would not know.
  std::vector<HandedGrant> HandOver();
  // As before HandOver.
  void TakeBack();

 private:
  struct Entry {
    // Empty for a grant with a door.
    std::optional<SecretDigest> digest;
    // Name from the grant's terms.
    std::string name;
    GrantView view;
  };

  absl::Status CheckHere() const RNICD_REQUIRES(mutex_);
  absl::Status CheckFree(const GrantTerms& terms) const RNICD_REQUIRES(mutex_);
  GrantId NewId() RNICD_REQUIRES(mutex_);
  // Removes the grant from all tables, and closes its tenant.
  std::shared_ptr<Tenant> RemoveEntry(std::map<GrantId, Entry>::iterator entry) RNICD_REQUIRES(mutex_);
  bool IsOver(const GrantView& view) const { return view.expiry.has_value() && *view.expiry <= clock_.Now(); }

  RandomSource& random_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::map<GrantId, Entry> grants_ RNICD_GUARDED_BY(mutex_);
  // Names of all grants.
  std::set<std::string> names_ RNICD_GUARDED_BY(mutex_);
  size_t devices_ RNICD_GUARDED_BY(mutex_) = 0;
  // Tenants of grants that have ended, until they are charged with nothing.
  std::vector<std::shared_ptr<Tenant>> ended_ RNICD_GUARDED_BY(mutex_);
  bool handed_over_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::core
