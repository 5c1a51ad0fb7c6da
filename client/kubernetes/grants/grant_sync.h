#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/kubernetes/grants/daemon.h"
#include "client/kubernetes/grants/grant_review.h"
#include "log/logger.h"
#include "rnicd/v1/policy.pb.h"

namespace rnicd::kubernetes {

// Bytes of those of a grant's devices that the node still offers; empty while that is unknown.
using OfferedBytes = std::function<std::optional<uint64_t>(const GrantRecord& record)>;

// Makes the daemon's grants equal to the kept ones. If a call for one grant fails the others are still tried, except
// when the daemon is away.
// Errors:   the daemon's; a transport failure takes precedence.
// Lifetime: daemon and logger outlive it.
// Threads:  as the daemon.
class GrantSync {
 public:
  // Renewed grants may connect with these.
  GrantSync(Daemon& daemon, const log::Logger& logger, v1::ConnectionPolicy connections)
      : daemon_(daemon), logger_(logger), connections_(std::move(connections)) {}

  // Revokes one grant; a grant that the daemon does not have counts as revoked.
  absl::Status Revoke(const GrantRecord& record, std::string_view reason) const;
  // Revokes suspended grants that are among `known`, the daemon's grants.
  absl::Status RevokeSuspended(std::span<const KeptGrant> grants, std::span<const v1::GrantInfo> known) const;
  // Creates the active grants again that the daemon does not have, each for no more than `offered` (may be empty) says;
  // one for nothing is withheld. A grant whose renewal the daemon refuses permanently is removed from `grants` and
  // logged. Also takes over from `known` which grants are bound to a pod.
  absl::Status RenewLost(std::vector<KeptGrant>& grants, std::span<const v1::GrantInfo> known,
                         const OfferedBytes& offered) const;
  // Binds the active grants whose pod is known to it, unless the daemon has seen no process in a pod yet.
  absl::Status Bind(std::vector<KeptGrant>& grants) const;
  // Adds grants for devices of `resources` that only the daemon has. A grant that shares a device with an active one is
  // revoked instead: no container got it. Sets `adopted` when it has added one.
  absl::Status Adopt(std::vector<KeptGrant>& grants, std::span<const v1::GrantInfo> known,
                     std::span<const std::string> resources, int64_t now_ms, bool& adopted) const;

 private:
  // Returns whether the daemon refuses it permanently; another failure becomes `status`.
  bool RenewOrForget(KeptGrant& grant, const OfferedBytes& offered, absl::Status& status) const;

  Daemon& daemon_;
  const log::Logger& logger_;
  const v1::ConnectionPolicy connections_;
};

// Keeps a transport failure, else the first failure.
void UpdateStatus(absl::Status& status, const absl::Status& next);

// Whether both are for one device.
bool SharesDevice(const GrantRecord& one, const GrantRecord& other);
// Whether both are for exactly the same devices.
bool SameDevices(const GrantRecord& one, const GrantRecord& other);

}  // namespace rnicd::kubernetes
