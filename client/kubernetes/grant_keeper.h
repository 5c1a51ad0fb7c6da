#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/random.h"
#include "client/kubernetes/daemon.h"
#include "client/kubernetes/grant_file.h"
#include "client/kubernetes/grant_review.h"
#include "client/kubernetes/holder.h"
#include "client/kubernetes/resource.h"
#include "daemon/log/logger.h"

namespace rnicd::kubernetes {

using WallTime = std::chrono::system_clock::time_point;

struct GrantOptions {
  // Names of this plugin's resources: a grant with devices of another resource, or without devices, has another owner.
  std::vector<std::string> resources;
  // Limits of each grant other than bytes; the same for every size.
  v1::ResourceLimits limits;
  // registered_bytes as a multiple of pinned_bytes; 0: no limit.
  uint64_t registered_times = 4;
  // How long a grant's devices may be without a holder before the grant is revoked; the kubelet needs a moment between
  // Allocate and naming the holder.
  std::chrono::milliseconds grace{60'000};
  // Grants for the same devices made within this time belong to one pod, to its init containers and its containers: the
  // kubelet allocates for all of them before it starts the first.
  std::chrono::milliseconds same_pod{10'000};
};

// The grants of this node's containers: created when the kubelet allocates, renewed when a new daemon does not have
// them, and revoked when no container holds their devices any more.
// Threads: safe; one change at a time. Readers do not wait for the daemon.
class GrantKeeper {
 public:
  // Everything except the options must outlive the keeper. Call Load first.
  GrantKeeper(Daemon& daemon, GrantFile& file, RandomSource& random, const log::Logger& logger, GrantOptions options);

  // Errors: as GrantFile::Load.
  absl::Status Load();

  // Creates a grant for a container that gets these devices and returns its secret, after the grant is on disk. A grant
  // that could not be saved is revoked again. Errors: the daemon's, the file's; kInvalidArgument for no devices, or for
  // more bytes than 64 bits can count.
  absl::StatusOr<std::string> Allocate(const ResourceSpec& resource, const std::vector<std::string>& device_ids,
                                       WallTime now);

  // Call it when a daemon was found, and periodically: renews the grants that the daemon does not have, and adopts
  // those that only the daemon has (by DeviceSet), so that they are revoked in time. A grant whose renewal the daemon
  // refuses permanently is removed and logged. Errors: the daemon's, the file's; whatever failed is retried the next
  // time.
  absl::Status Renew(WallTime now);

  // Compares the grants with the current holders of devices; the caller must have asked the kubelet after the last
  // Reconcile returned. A grant is revoked when
  //   its devices have had no holder for `grace`, or
  //   it was created for one pod and another pod holds one of its devices now: the kubelet reports that only after the
  //   first pod has ended.
  // The time without a holder is summed over the intervals between reviews, and one interval counts for at most half of
  // `grace`: a clock that is set, or a kubelet that was silent for long, ends no grant.
  // Errors: the daemon's, the file's; grants not yet revoked are retried the next time.
  absl::Status Reconcile(std::span<const Holder> holders, WallTime now);

  // Whether a current grant covers exactly these devices; PreStartContainer checks this.
  bool Covers(const std::string& resource, std::span<const std::string> device_ids) const;

  // In order of creation.
  std::vector<GrantRecord> records() const;

 private:
  std::vector<KeptGrant> Snapshot() const;
  void Publish(std::vector<KeptGrant> grants);
  absl::Status Save(std::span<const KeptGrant> grants) RNICD_REQUIRES(change_);
  std::chrono::milliseconds SinceLastReview(WallTime now) RNICD_REQUIRES(change_);
  absl::Status RenewLost(std::vector<KeptGrant>& grants, std::span<const v1::GrantInfo> known) const;
  bool Adopt(std::vector<KeptGrant>& grants, std::span<const v1::GrantInfo> known, WallTime now) const;
  absl::Status Revoke(std::vector<KeptGrant>& grants, std::span<const Verdict> verdicts) const;

  Daemon& daemon_;
  GrantFile& file_;
  RandomSource& random_;
  const log::Logger& logger_;
  const GrantOptions options_;
  // Held during a whole change: the calls to the daemon and the write of the file. Acquired before mutex_.
  Mutex change_;
  // The file is out of date, because it could not be written.
  bool unsaved_ RNICD_GUARDED_BY(change_) = false;
  std::optional<WallTime> last_review_ RNICD_GUARDED_BY(change_);
  mutable Mutex mutex_;
  std::vector<KeptGrant> grants_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::kubernetes
