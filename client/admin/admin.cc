#include "client/admin/admin.h"

#include <utility>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "client/admin/methods.h"
#include "client/admin/own_container.h"
#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/transport_failure.h"
#include "grpc/health/v1/health.pb.h"

namespace rnicd::inline client {
namespace {

constexpr uint32_t kPageSize = 10'000;

}  // namespace

Admin::Admin(std::string admin_socket_dir, std::chrono::milliseconds call_timeout, uint32_t generation)
    : admin_socket_dir_(std::move(admin_socket_dir)), call_timeout_(call_timeout), generation_(generation) {}

absl::StatusOr<std::shared_ptr<Channel>> Admin::Connected() {
  {
    MutexLock lock(mutex_);
    if (channel_ != nullptr && !channel_->ended()) {
      return channel_;
    }
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Channel> channel,
                         ConnectAsOperator(admin_socket_dir_, call_timeout_, generation_));
  MutexLock lock(mutex_);
  channel_ = std::move(channel);
  return channel_;
}

template <typename Request, typename Response>
absl::StatusOr<Response> Admin::Call(const Method<Request, Response>& method,
                                     const std::type_identity_t<Request>& request) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Channel> channel, Connected());
  return client::Call(*channel, method, request, call_timeout_);
}

// Follows the page tokens.
template <typename Item, typename Request, typename Response, typename ItemsOf>
absl::StatusOr<std::vector<Item>> Admin::FetchAll(const Method<Request, Response>& method, const ItemsOf& items_of) {
  std::vector<Item> all;
  Request request;
  request.set_page_size(kPageSize);
  for (;;) {
    RNICD_ASSIGN_OR_RETURN(const Response response, Call(method, request));
    const auto& items = items_of(response);
    all.insert(all.end(), items.begin(), items.end());
    if (response.next_page_token().empty()) {
      return all;
    }
    if (response.next_page_token() == request.page_token()) {
      return TransportFailure(absl::StatusCode::kInternal, "the list's page token does not advance");
    }
    request.set_page_token(response.next_page_token());
  }
}

absl::StatusOr<v1::GetStatusResponse> Admin::Status() { return Call(kGetStatus, {}); }

absl::StatusOr<bool> Admin::Serving(const char* service) {
  using grpc::health::v1::HealthCheckRequest;
  using grpc::health::v1::HealthCheckResponse;
  constexpr Method<HealthCheckRequest, HealthCheckResponse> kCheck{"/grpc.health.v1.Health/Check"};
  HealthCheckRequest request;
  request.set_service(service);
  RNICD_ASSIGN_OR_RETURN(const HealthCheckResponse response, Call(kCheck, request));
  return response.status() == HealthCheckResponse::SERVING;
}

absl::StatusOr<bool> Admin::IsInThisContainer() {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Channel> channel, Connected());
  return IsDaemonInThisContainer(channel->descriptor());
}

absl::StatusOr<std::vector<v1::SessionInfo>> Admin::Sessions() {
  return FetchAll<v1::SessionInfo>(kListSessions,
                                   [](const auto& response) -> const auto& { return response.sessions(); });
}

absl::StatusOr<std::vector<v1::RegionInfo>> Admin::Regions() {
  return FetchAll<v1::RegionInfo>(kListRegions, [](const auto& response) -> const auto& { return response.regions(); });
}

absl::StatusOr<std::vector<v1::ListenerInfo>> Admin::Listeners() {
  return FetchAll<v1::ListenerInfo>(kListListeners,
                                    [](const auto& response) -> const auto& { return response.listeners(); });
}

absl::StatusOr<std::vector<v1::ConnectionInfo>> Admin::Connections() {
  return FetchAll<v1::ConnectionInfo>(kListConnections,
                                      [](const auto& response) -> const auto& { return response.connections(); });
}

absl::StatusOr<std::vector<v1::TenantInfo>> Admin::Tenants() {
  RNICD_ASSIGN_OR_RETURN(const v1::ListTenantsResponse response, Call(kListTenants, {}));
  return std::vector<v1::TenantInfo>(response.tenants().begin(), response.tenants().end());
}

absl::StatusOr<v1::InspectSessionResponse> Admin::Inspect(uint64_t session_id) {
  v1::InspectSessionRequest request;
  request.set_session_id(session_id);
  return Call(kInspectSession, request);
}

absl::StatusOr<std::string> Admin::Dump() {
  RNICD_ASSIGN_OR_RETURN(v1::DumpStateResponse response, Call(kDumpState, {}));
  return std::move(*response.mutable_json());
}

absl::StatusOr<v1::EvictSessionResponse> Admin::Evict(uint64_t session_id) {
  v1::EvictSessionRequest request;
  request.set_session_id(session_id);
  return Call(kEvictSession, request);
}

absl::StatusOr<v1::DrainResponse> Admin::Drain(bool resume) {
  v1::DrainRequest request;
  request.set_resume(resume);
  return Call(kDrain, request);
}

absl::StatusOr<std::string> Admin::SetLogLevel(const std::string& level) {
  v1::SetLogLevelRequest request;
  request.set_level(level);
  RNICD_ASSIGN_OR_RETURN(const v1::SetLogLevelResponse response, Call(kSetLogLevel, request));
  return response.previous();
}

// Not through Call: only the daemon's text has the mistake in the file and its line.
absl::Status Admin::ReloadPolicy() {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Channel> channel, Connected());
  RNICD_ASSIGN_OR_RETURN(const Channel::Answer answer, channel->Call(kReloadPolicy.path, "", call_timeout_));
  absl::Status status = StatusFrom(answer.status);
  if (status.ok() || IsTransportFailure(status)) {
    return status;
  }
  absl::Status told(status.code(), answer.status.message);
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) { told.SetPayload(type, payload); });
  return told;
}

absl::StatusOr<v1::CreateGrantResponse> Admin::CreateGrant(const v1::CreateGrantRequest& request) {
  return Call(kCreateGrant, request);
}

absl::StatusOr<std::vector<v1::GrantInfo>> Admin::Grants() {
  RNICD_ASSIGN_OR_RETURN(const v1::ListGrantsResponse response, Call(kListGrants, {}));
  return std::vector<v1::GrantInfo>(response.grants().begin(), response.grants().end());
}

absl::StatusOr<uint64_t> Admin::RevokeGrant(uint64_t grant_id) {
  v1::RevokeGrantRequest request;
  request.set_grant_id(grant_id);
  RNICD_ASSIGN_OR_RETURN(const v1::RevokeGrantResponse response, Call(kRevokeGrant, request));
  return response.sessions_ended();
}

absl::StatusOr<std::string> Admin::BindGrant(uint64_t grant_id, const std::string& pod_uid) {
  v1::BindGrantRequest request;
  request.set_grant_id(grant_id);
  request.set_pod_uid(pod_uid);
  RNICD_ASSIGN_OR_RETURN(const v1::BindGrantResponse response, Call(kBindGrant, request));
  return response.pod_uid();
}

absl::Status Admin::SetPods(const v1::SetPodsRequest& request) { return Call(kSetPods, request).status(); }

}  // namespace rnicd::inline client
