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
  // The names of our resources: a grant that has devices of another, or none, is somebody else's.
  std::vector<std::string> resources;
  // Limits of each grant besides bytes, whatever its size.
  v1::ResourceLimits limits;
  // registered_bytes is so many times pinned_bytes; 0: without a limit.
  uint64_t registered_times = 4;
  // A grant whose devices nobody holds is revoked after so long; the kubelet needs a moment between Allocate and naming
  // the holder.
  std::chrono::milliseconds grace{60'000};
  // Grants for the same devices made within so long belong to one pod: its init containers and its containers. The
  // kubelet allocates for all of them before it starts the first.
  std::chrono::milliseconds same_pod{10'000};
};

// The grants of this node's containers: made when the kubelet allocates, made again when a new daemon knows nothing of
// them, revoked when nobody holds their devices any more.
// Threads: safe; one change at a time. What only reads does not wait for the daemon.
class GrantKeeper {
 public:
  // All but the options outlive the keeper. Load must come first.
  GrantKeeper(Daemon& daemon, GrantFile& file, RandomSource& random, const log::Logger& logger, GrantOptions options);

  // Errors: as GrantFile::Load.
  absl::Status Load();

  // A new grant for a container that gets these devices; answers the secret. It is on disk before the secret is told. A
  // grant that could not be noted down is revoked again. Errors: the daemon's, the file's; kInvalidArgument for no
  // devices, or more bytes than 64 bits count.
  absl::StatusOr<std::string> Allocate(const ResourceSpec& resource, const std::vector<std::string>& device_ids,
                                       WallTime now);

  // To be called when a daemon was found, and now and then: makes again what it does not know, and takes over what only
  // it knows (by DeviceSet), so that it is revoked in its time. A grant that the daemon refuses to make again for good
  // is forgotten, with a line in the log. Errors: the daemon's, the file's; what failed is tried again the next time.
  absl::Status Renew(WallTime now);

  // Compares with who holds devices now; the kubelet was asked after the last Reconcile returned. A grant is revoked
  // when
  //   its devices have been held by nobody for `grace`, or
  //   it was given to one pod and another pod holds one of its devices now: the kubelet says so only after the first is
  //   gone.
  // How long nobody held them is counted from look to look, and no two looks vouch for more than half of `grace`: a
  // clock that is set, or a kubelet that was silent for long, ends no grant.
  // Errors: the daemon's, the file's; what is not revoked yet is tried again the next time.
  absl::Status Reconcile(std::span<const Holder> holders, WallTime now);

  // Whether a living grant covers exactly these devices: what PreStartContainer asks.
  bool Covers(const std::string& resource, std::span<const std::string> device_ids) const;

  // In the order in which they were made.
  std::vector<GrantRecord> records() const;

 private:
  std::vector<KeptGrant> Snapshot() const;
  void Publish(std::vector<KeptGrant> grants);
  absl::Status Save(std::span<const KeptGrant> grants) RNICD_REQUIRES(change_);
  std::chrono::milliseconds SinceLastLook(WallTime now) RNICD_REQUIRES(change_);
  absl::Status MakeAgain(std::vector<KeptGrant>& grants, std::span<const v1::GrantInfo> known) const;
  bool TakeOver(std::vector<KeptGrant>& grants, std::span<const v1::GrantInfo> known, WallTime now) const;
  absl::Status Revoke(std::vector<KeptGrant>& grants, std::span<const Verdict> verdicts) const;

  Daemon& daemon_;
  GrantFile& file_;
  RandomSource& random_;
  const log::Logger& logger_;
  const GrantOptions options_;
  // Held over a whole change: what the daemon is told and what is written down. Before mutex_.
  Mutex change_;
  // The file is behind, because it could not be written.
  bool unsaved_ RNICD_GUARDED_BY(change_) = false;
  std::optional<WallTime> last_look_ RNICD_GUARDED_BY(change_);
  mutable Mutex mutex_;
  std::vector<KeptGrant> grants_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::kubernetes
