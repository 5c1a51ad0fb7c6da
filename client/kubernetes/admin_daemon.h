#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "client/admin/admin.h"
#include "client/kubernetes/grants/daemon.h"

namespace rnicd::kubernetes {

// The real daemon, over its operator's socket.
// Threads: safe.
class AdminDaemon final : public Daemon {
 public:
  // The socket need not exist yet, and may disappear and come back. A call that takes longer than `call_timeout` is a
  // transport failure.
  AdminDaemon(const std::string& admin_socket_dir, std::chrono::milliseconds call_timeout)
      : admin_(admin_socket_dir, call_timeout) {}

  absl::StatusOr<v1::GetStatusResponse> Status() override { return admin_.Status(); }
  absl::StatusOr<v1::CreateGrantResponse> CreateGrant(const v1::CreateGrantRequest& request) override {
    return admin_.CreateGrant(request);
  }
  absl::StatusOr<std::vector<v1::GrantInfo>> Grants() override { return admin_.Grants(); }
  absl::StatusOr<uint64_t> RevokeGrant(uint64_t grant_id) override { return admin_.RevokeGrant(grant_id); }
  absl::StatusOr<std::string> BindGrant(uint64_t grant_id, const std::string& pod_uid) override {
    return admin_.BindGrant(grant_id, pod_uid);
  }
  absl::Status SetPods(const v1::SetPodsRequest& request) override { return admin_.SetPods(request); }

 private:
  Admin admin_;
};

}  // namespace rnicd::kubernetes
