#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/secrets/random.h"
#include "client/kubernetes/grants/daemon.h"
#include "client/kubernetes/grants/grant_file.h"
#include "client/kubernetes/grants/grant_review.h"
#include "client/kubernetes/grants/grant_sync.h"
#include "client/kubernetes/resources/resource.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

using WallTime = std::chrono::system_clock::time_point;

struct GrantOptions {
  // Names of this plugin's resources: a grant with devices of another resource, or without devices, has another owner.
  std::vector<std::string> resources;
  // Limits of each grant other than bytes; the same for every size.
  v1::ResourceLimits limits;
  // What each grant may connect with, also one that is renewed: they are not kept with it, so that the operator's
  // latest wall holds for all.
  v1::ConnectionPolicy connections;
  // registered_bytes as a multiple of pinned_bytes; 0: no limit.
  uint64_t registered_times = 4;
  // How long a grant's pod may be gone before the grant is revoked; kubelet and API server need a moment between
  // Allocate and naming the pod.
  std::chrono::milliseconds grace{60'000};
  // Limits the renewal of grants; empty: every grant is renewed as it was.
  OfferedBytes offered_bytes;
};

// The grants of this node's containers: created when the kubelet allocates, renewed when a new daemon does not have
// them, and revoked when their pod is gone.
//
// No device is in two grants of the daemon, so the grants together are never for more than the pool. The kubelet
// allocates a device again in two cases, which Allocate cannot distinguish: its pod is dead, or it belonged to an init
// container and goes to the next container of the same pod. In both the older grant is suspended: revoked in the
// daemon, and kept here. If its container starts after all, Prepare exchanges the two. An Allocate for exactly the
// devices of a grant gets that grant while no container can have started with it; later it replaces the grant, so no
// two grants are for exactly the same devices.
//
// Threads: safe; one change at a time. Readers do not wait for the daemon.
class GrantKeeper {
 public:
  // Everything except the options must outlive the keeper. Call Load first.
  GrantKeeper(Daemon& daemon, GrantFile& file, RandomSource& random, const log::Logger& logger, GrantOptions options);

  // Errors: as GrantFile::Load.
  absl::Status Load();

  // Creates a grant with a door for a container that gets these devices and returns its id, after every other grant for
  // one of the devices was revoked and the new one is on disk. A grant that could not be saved is revoked again.
  // Errors: the daemon's, the file's; kFailedPrecondition for a daemon that makes no doors; kInvalidArgument for no
  // devices, or for more bytes than 64 bits can count.
  absl::StatusOr<uint64_t> Allocate(const ResourceSpec& resource, const std::vector<std::string>& device_ids,
                                    WallTime now);

  // Ensures that the daemon has the grant for exactly these devices and no other one for any of them, because their
  // container starts now, and that it is bound to the container's pod; an empty `pod_uid` is unknown. Errors:
  // kFailedPrecondition without such a grant, or when the node offers none of the devices any more; the daemon's, the
  // file's.
  absl::Status Prepare(const std::string& resource, const std::vector<std::string>& device_ids,
                       const std::string& pod_uid, WallTime now);

  // Call it when a kubelet connects. Containers may have started without Prepare, so no door is given a second
  // time; and that kubelet may have lost its record of who has which devices.
  void KubeletConnected();

  // Devices of grants whose container may run without the running kubelet's knowledge: it gives them away for free.
  std::set<std::string> DevicesToAvoid(const std::string& resource) const;

  // Returns when a change could begin.
  void AwaitTurn();

  // Call it when a daemon was found, and periodically: renews the grants that the daemon does not have and binds them
  // to their pods, revokes suspended ones that it has, and adopts those that only the daemon has (by DeviceSet), so
  // that they are revoked in time. A grant whose renewal the daemon refuses permanently is removed and logged. Errors:
  // the daemon's, the file's; whatever failed is retried the next time.
  absl::Status Renew(WallTime now);

  // Compares the grants with the node's pods; the caller must have begun to observe after the last Reconcile returned.
  // A grant is revoked when its pod has been gone for `grace`, and earlier when another pod holds one of its devices.
  // The time is summed over the intervals between reviews, and one interval counts for at most half of `grace`: a clock
  // that is set, or a kubelet that was silent for long, ends no grant. A grant that stays is bound to its pod.
  // Errors: the daemon's, the file's; grants not yet revoked are retried the next time.
  absl::Status Reconcile(const NodeView& view, WallTime now);

  // In order of creation.
  std::vector<GrantRecord> records() const;
  // This plugin's resources, and those that are no longer offered but that pods still hold.
  std::vector<std::string> ResourcesInUse() const;

 private:
  std::vector<KeptGrant> Snapshot() const;
  void Publish(std::vector<KeptGrant> grants);
  absl::Status Save(std::span<const KeptGrant> grants) RNICD_REQUIRES(change_);
  std::chrono::milliseconds SinceLastReview(WallTime now) RNICD_REQUIRES(change_);
  absl::StatusOr<uint64_t> AllocateAgain(std::vector<KeptGrant> grants, size_t index, WallTime now)
      RNICD_REQUIRES(change_);
  absl::Status Suspend(std::vector<KeptGrant>& grants, const GrantRecord& record) RNICD_REQUIRES(change_);
  absl::StatusOr<uint64_t> Create(std::vector<KeptGrant> grants, GrantRecord record) RNICD_REQUIRES(change_);
  absl::Status Activate(std::vector<KeptGrant> grants, size_t index, WallTime now) RNICD_REQUIRES(change_);
  absl::Status Synchronize(std::vector<KeptGrant> grants, WallTime now) RNICD_REQUIRES(change_);
  absl::Status Revoke(std::vector<KeptGrant>& grants, std::span<const Verdict> verdicts) const;

  Daemon& daemon_;
  GrantFile& file_;
  RandomSource& random_;
  const GrantOptions options_;
  const GrantSync sync_;
  // Held during a whole change: the calls to the daemon and the write of the file. Acquired before mutex_.
  Mutex change_;
  // The file is out of date, because it could not be written.
  bool unsaved_ RNICD_GUARDED_BY(change_) = false;
  std::optional<WallTime> last_review_ RNICD_GUARDED_BY(change_);
  // A kubelet has connected since the last review, so the next observation may be of the one before it.
  bool kubelet_is_new_ RNICD_GUARDED_BY(change_) = false;
  mutable Mutex mutex_;
  std::vector<KeptGrant> grants_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::kubernetes
