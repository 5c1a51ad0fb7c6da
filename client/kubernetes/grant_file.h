#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rnicd/v1/policy.pb.h"

namespace rnicd::kubernetes {

// A grant that was given to a container, with all that is needed to make it again. No secret: its SHA-256.
struct GrantRecord {
  uint64_t grant_id = 0;
  // 32 bytes; empty for a grant that was found in the daemon and not in the file, which cannot be renewed.
  std::string secret_sha256;
  // The grant's name: "memory-64mi/numa0-0000/3f2a91bc".
  std::string name;
  std::string resource;
  std::vector<std::string> device_ids;
  v1::ResourceLimits limits;
  // Unix time in milliseconds.
  int64_t made_ms = 0;
  // Who was first seen to hold its devices: "namespace/pod"; empty until somebody was.
  std::string pod;
};

// Where grants outlive the plugin and the daemon: one JSON file of mode 0600, replaced as a whole, so that a crash
// leaves the old one or the new one. The kubelet keeps what Allocate answered over restarts of the node, and so must
// this. Threads: one at a time.
class GrantFile {
 public:
  // The folder must exist and belong to this user or root. Errors of both calls: what went wrong with which file.
  explicit GrantFile(std::string folder);

  // Empty when there is no file yet. A file that cannot be understood is moved aside ("grants.json.bad") and is an
  // error the first time.
  absl::StatusOr<std::vector<GrantRecord>> Load() const;
  // On disk when it returns.
  absl::Status Save(const std::vector<GrantRecord>& grants) const;

 private:
  const std::string path_;
};

}  // namespace rnicd::kubernetes
