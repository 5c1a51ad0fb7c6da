#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::kubernetes {

// The node's daemon, limited to the calls that a device plugin may make. Errors are AdminService's, and transport
// failures (client/cpp/transport_failure.h) while the daemon is away. An interface, because grants and devices are
// tested with daemons that lose responses, restart and refuse when a test says so (FakeDaemon); there is one real
// daemon.
// Threads: safe.
class Daemon {
 public:
  virtual ~Daemon() = default;
  virtual absl::StatusOr<v1::GetStatusResponse> Status() = 0;
  virtual absl::StatusOr<v1::CreateGrantResponse> CreateGrant(const v1::CreateGrantRequest& request) = 0;
  virtual absl::StatusOr<std::vector<v1::GrantInfo>> Grants() = 0;
  // Returns how many sessions this ends.
  virtual absl::StatusOr<uint64_t> RevokeGrant(uint64_t grant_id) = 0;
  // Returns the UID of the pod that the grant is bound to now; empty if none.
  virtual absl::StatusOr<std::string> BindGrant(uint64_t grant_id, const std::string& pod_uid) = 0;
  virtual absl::Status SetPods(const v1::SetPodsRequest& request) = 0;
};

}  // namespace rnicd::kubernetes
