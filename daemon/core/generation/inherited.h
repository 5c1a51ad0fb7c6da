#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "daemon/core/generation/inheritance.h"
#include "daemon/core/request/node.h"
#include "daemon/core/tenant/tenant.h"

namespace rnicd::core {

// The newer of two generations of the daemon: what the older one holds counts here as foreign use of the same tenants
// and of the node, until it is over. One for each older generation.
// Lifetime: the node outlives it.
// Threads:  safe.
class Inherited {
 public:
  explicit Inherited(Node& node) : node_(node) {}
  ~Inherited() { Drop(); }

  // Takes grants, pods, foreign use, even above a limit, and processes. Grants that are here already stay. Errors: as
  // GrantTable::Create; then it is not complete.
  absl::Status Take(const Inheritance& inheritance);
  // What a still newer generation is to take: processes and foreign use.
  Inheritance Left() const;
  // Whether the older generation has a session of this process. Quick; for each accepted connection.
  bool Owns(const ProcessKey& process) const;
  // The last session of this process has ended there.
  void Gone(const ProcessKey& process);
  // Counts what fits into the limits, and returns what is in force.
  HeldUse Grow(const HeldUse& wanted);
  void Shrink(const HeldUse& shrunk);
  // The older generation has ended: no foreign use, no processes.
  void Drop();

 private:
  struct Owner {
    // With what is counted here.
    HeldUse use;
    // Null for the node.
    std::shared_ptr<Tenant> tenant;
    std::shared_ptr<Ledger> ledger;
  };
  using Key = std::pair<GrantId, std::string>;
  using Grants = std::map<GrantId, std::shared_ptr<Tenant>>;

  absl::Status TakeGrants(const Inheritance& inheritance);
  void TakeUse(const HeldUse& use, const Grants& grants) RNICD_REQUIRES(mutex_);
  // Null for a grant that has ended.
  std::shared_ptr<Tenant> TenantOf(const HeldUse& use, const Grants& grants) const;

  Node& node_;
  mutable Mutex mutex_;
  std::unordered_set<ProcessKey> processes_ RNICD_GUARDED_BY(mutex_);
  std::map<Key, Owner> owners_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
