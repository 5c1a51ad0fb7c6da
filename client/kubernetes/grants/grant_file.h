#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rnicd/v1/policy.pb.h"

namespace rnicd::kubernetes {

// A container's grant, with everything needed to create it again.
struct GrantRecord {
  uint64_t grant_id = 0;
  // The grant has a door. Without one it was created by an earlier release, and its container has a secret.
  bool has_door = false;
  // 32 bytes; empty for a grant with a door, and for one that was found in the daemon but not in the file: without a
  // door that one cannot be renewed.
  std::string secret_sha256;
  // The grant's name: "memory-64mi/numa0-0000/3f2a91bc".
  std::string name;
  std::string resource;
  std::vector<std::string> device_ids;
  v1::ResourceLimits limits;
  // Creation time: Unix time in milliseconds.
  int64_t made_ms = 0;
  // "namespace/pod" of the pod that has the grant; empty until the kubelet or the API server named it.
  std::string pod;
  // UID of that pod by the kubelet's checkpoint, so for a static pod not that of its mirror; empty until a container
  // started or a pod was observed.
  std::string pod_uid;
  // Name of the container that has the grant; empty until the kubelet named it.
  std::string container;
  // The daemon must not have the grant, because another grant for one of its devices is in use; GrantKeeper has the
  // rules.
  bool suspended = false;
};

// Stores grants across restarts of the plugin and the daemon: one JSON file of mode 0600, replaced as a whole, so that
// a crash leaves either the old or the new content. The kubelet keeps Allocate's responses across restarts of the node,
// so this file must survive them too.
// Threads: one at a time.
class GrantFile {
 public:
  // The folder must exist and belong to this user or root. Errors of both calls name the file and the failed call.
  explicit GrantFile(std::string folder);

  // Empty when there is no file yet. Errors: kDataLoss for a file that cannot be parsed and was renamed to
  // "grants.json.bad"; kFailedPrecondition for a file that cannot be used.
  absl::StatusOr<std::vector<GrantRecord>> Load() const;
  // The grants are on disk when this returns.
  absl::Status Save(const std::vector<GrantRecord>& grants) const;

 private:
  const std::string path_;
};

// Content of the grant file: {"version": 1, "grants": [...]}, one object for each grant. Ids are text, because many
// JSON readers round 64-bit numbers.
std::string GrantsToJson(const std::vector<GrantRecord>& grants);

// Validates every member that it reads and ignores unknown members.
// Errors: kUnimplemented for another version, kInvalidArgument for everything else; both with text for people.
absl::StatusOr<std::vector<GrantRecord>> GrantsFromJson(std::string_view text);

}  // namespace rnicd::kubernetes
