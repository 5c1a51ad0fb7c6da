#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "client/cpp/channel/channel.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::inline client {

// The operator's interface to the node, over the admin socket. Lists are fetched page by page to their end.
// It connects when it is first called, and again after the daemon ended the connection.
// Threads: safe.
// Errors:  METHOD_NOT_PERMITTED and those of the call; transport failures, also when the caller may not open the socket
//          and when the daemon does not respond in time.
class Admin {
 public:
  static constexpr std::chrono::milliseconds kDefaultTimeout{30'000};

  // `admin_socket_dir`: the directory of admin.sock; on Windows the name of the operators' pipe. `call_timeout` is for
  // connecting, and for each call to the daemon, and so for each page of a list; above 0. `generation` is that of
  // ConnectAsOperator.
  explicit Admin(std::string admin_socket_dir, std::chrono::milliseconds call_timeout = kDefaultTimeout,
                 uint32_t generation = 0);

  absl::StatusOr<v1::GetStatusResponse> Status();
  // Whether the daemon reports SERVING: for its workloads, and for itself alone.
  absl::StatusOr<bool> Ready() { return Serving("rnicd"); }
  absl::StatusOr<bool> Live() { return Serving("rnicd.live"); }
  // Whether the daemon is in the container of this process.
  absl::StatusOr<bool> IsInThisContainer();
  absl::StatusOr<std::vector<v1::SessionInfo>> Sessions();
  absl::StatusOr<std::vector<v1::RegionInfo>> Regions();
  absl::StatusOr<std::vector<v1::ListenerInfo>> Listeners();
  absl::StatusOr<std::vector<v1::ConnectionInfo>> Connections();
  absl::StatusOr<std::vector<v1::TenantInfo>> Tenants();
  absl::StatusOr<v1::InspectSessionResponse> Inspect(uint64_t session_id);
  // A StateDump as JSON.
  absl::StatusOr<std::string> Dump();

  // Returns when the session's resources have been released.
  absl::StatusOr<v1::EvictSessionResponse> Evict(uint64_t session_id);
  absl::StatusOr<v1::DrainResponse> Drain(bool resume);
  // Returns the previous level.
  absl::StatusOr<std::string> SetLogLevel(const std::string& level);
  absl::Status ReloadPolicy();

  absl::StatusOr<v1::CreateGrantResponse> CreateGrant(const v1::CreateGrantRequest& request);
  absl::StatusOr<std::vector<v1::GrantInfo>> Grants();
  // Returns how many sessions this ends.
  absl::StatusOr<uint64_t> RevokeGrant(uint64_t grant_id);
  // Returns the UID of the pod that the grant is bound to now; empty if none.
  absl::StatusOr<std::string> BindGrant(uint64_t grant_id, const std::string& pod_uid);
  absl::Status SetPods(const v1::SetPodsRequest& request);

 private:
  absl::StatusOr<bool> Serving(const char* service);
  // One call. Errors: those of the connection; the call's.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(const Method<Request, Response>& method, const std::type_identity_t<Request>& request);
  // All items of a list. `items_of` returns the repeated field of a response.
  template <typename Item, typename Request, typename Response, typename ItemsOf>
  absl::StatusOr<std::vector<Item>> FetchAll(const Method<Request, Response>& method, const ItemsOf& items_of);

  // The open connection, or a new one. Errors: those of the connection.
  absl::StatusOr<std::shared_ptr<Channel>> Connected();

  const std::string admin_socket_dir_;
  const std::chrono::milliseconds call_timeout_;
  const uint32_t generation_;
  Mutex mutex_;
  std::shared_ptr<Channel> channel_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::inline client
