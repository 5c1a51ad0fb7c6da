#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rnicd/v1/admin_service.grpc.pb.h"

namespace rnicd::ctl {

// The operator's view of the node, over the admin socket. Lists are fetched page by page to their end.
// Errors: METHOD_NOT_PERMITTED; transport failures, also when the caller may not open the socket.
class Admin {
 public:
  explicit Admin(const std::string& admin_socket_dir);

  absl::StatusOr<v1::GetStatusResponse> Status();
  absl::StatusOr<std::vector<v1::SessionInfo>> Sessions();
  absl::StatusOr<std::vector<v1::RegionInfo>> Regions();

 private:
  std::unique_ptr<v1::AdminService::Stub> stub_;
};

}  // namespace rnicd::ctl
