#include "client/admin/admin.h"

#include <utility>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "client/cpp/channel.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

constexpr uint32_t kPageSize = 10'000;

// Follows the page tokens. `items_of` returns the repeated field of a response.
template <typename Item, typename Request, typename Response, typename ItemsOf>
absl::StatusOr<std::vector<Item>> FetchAll(v1::AdminService::Stub& stub,
                                           grpc::Status (v1::AdminService::Stub::*method)(grpc::ClientContext*,
                                                                                          const Request&, Response*),
                                           const ItemsOf& items_of, std::chrono::milliseconds timeout) {
  std::vector<Item> all;
  Request request;
  request.set_page_size(kPageSize);
  for (;;) {
    RNICD_ASSIGN_OR_RETURN(const Response response, CallUnary(stub, method, request, timeout));
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

}  // namespace

Admin::Admin(const std::string& admin_socket_dir, std::chrono::milliseconds call_timeout)
    : Admin(MakeUnixChannel(admin_socket_dir + "/admin.sock"), call_timeout) {}

Admin::Admin(const std::shared_ptr<grpc::Channel>& channel, std::chrono::milliseconds call_timeout)
    : call_timeout_(call_timeout),
      stub_(v1::AdminService::NewStub(channel)),
      health_(grpc::health::v1::Health::NewStub(channel)) {}

absl::StatusOr<v1::GetStatusResponse> Admin::Status() {
  return CallUnary(*stub_, &v1::AdminService::Stub::GetStatus, {}, call_timeout_);
}

absl::StatusOr<bool> Admin::Ready() {
  using grpc::health::v1::HealthCheckResponse;
  RNICD_ASSIGN_OR_RETURN(const HealthCheckResponse response,
                         CallUnary(*health_, &grpc::health::v1::Health::Stub::Check, {}, call_timeout_));
  return response.status() == HealthCheckResponse::SERVING;
}

absl::StatusOr<std::vector<v1::SessionInfo>> Admin::Sessions() {
  return FetchAll<v1::SessionInfo>(
      *stub_, &v1::AdminService::Stub::ListSessions,
      [](const auto& response) -> const auto& { return response.sessions(); }, call_timeout_);
}

absl::StatusOr<std::vector<v1::RegionInfo>> Admin::Regions() {
  return FetchAll<v1::RegionInfo>(
      *stub_, &v1::AdminService::Stub::ListRegions,
      [](const auto& response) -> const auto& { return response.regions(); }, call_timeout_);
}

absl::StatusOr<std::vector<v1::TenantInfo>> Admin::Tenants() {
  RNICD_ASSIGN_OR_RETURN(const v1::ListTenantsResponse response,
                         CallUnary(*stub_, &v1::AdminService::Stub::ListTenants, {}, call_timeout_));
  return std::vector<v1::TenantInfo>(response.tenants().begin(), response.tenants().end());
}

absl::StatusOr<v1::InspectSessionResponse> Admin::Inspect(uint64_t session_id) {
  v1::InspectSessionRequest request;
  request.set_session_id(session_id);
  return CallUnary(*stub_, &v1::AdminService::Stub::InspectSession, request, call_timeout_);
}

absl::StatusOr<std::string> Admin::Dump() {
  RNICD_ASSIGN_OR_RETURN(v1::DumpStateResponse response,
                         CallUnary(*stub_, &v1::AdminService::Stub::DumpState, {}, call_timeout_));
  return std::move(*response.mutable_json());
}

absl::StatusOr<v1::EvictSessionResponse> Admin::Evict(uint64_t session_id) {
  v1::EvictSessionRequest request;
  request.set_session_id(session_id);
  return CallUnary(*stub_, &v1::AdminService::Stub::EvictSession, request, call_timeout_);
}

absl::StatusOr<v1::DrainResponse> Admin::Drain(bool resume) {
  v1::DrainRequest request;
  request.set_resume(resume);
  return CallUnary(*stub_, &v1::AdminService::Stub::Drain, request, call_timeout_);
}

absl::StatusOr<std::string> Admin::SetLogLevel(const std::string& level) {
  v1::SetLogLevelRequest request;
  request.set_level(level);
  RNICD_ASSIGN_OR_RETURN(const v1::SetLogLevelResponse response,
                         CallUnary(*stub_, &v1::AdminService::Stub::SetLogLevel, request, call_timeout_));
  return response.previous();
}

// Not through CallUnary: only the daemon's text has the mistake in the file and its line.
absl::Status Admin::ReloadPolicy() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + call_timeout_);
  v1::ReloadPolicyResponse response;
  const grpc::Status outcome = stub_->ReloadPolicy(&context, {}, &response);
  const absl::Status status = StatusFromGrpc(outcome);
  if (status.ok() || IsTransportFailure(status)) {
    return status;
  }
  absl::Status told(status.code(), outcome.error_message());
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) { told.SetPayload(type, payload); });
  return told;
}

absl::StatusOr<v1::CreateGrantResponse> Admin::CreateGrant(const v1::CreateGrantRequest& request) {
  return CallUnary(*stub_, &v1::AdminService::Stub::CreateGrant, request, call_timeout_);
}

absl::StatusOr<std::vector<v1::GrantInfo>> Admin::Grants() {
  RNICD_ASSIGN_OR_RETURN(const v1::ListGrantsResponse response,
                         CallUnary(*stub_, &v1::AdminService::Stub::ListGrants, {}, call_timeout_));
  return std::vector<v1::GrantInfo>(response.grants().begin(), response.grants().end());
}

absl::StatusOr<uint64_t> Admin::RevokeGrant(uint64_t grant_id) {
  v1::RevokeGrantRequest request;
  request.set_grant_id(grant_id);
  RNICD_ASSIGN_OR_RETURN(const v1::RevokeGrantResponse response,
                         CallUnary(*stub_, &v1::AdminService::Stub::RevokeGrant, request, call_timeout_));
  return response.sessions_ended();
}

absl::Status Admin::SetPods(const v1::SetPodsRequest& request) {
  return CallUnary(*stub_, &v1::AdminService::Stub::SetPods, request, call_timeout_).status();
}

}  // namespace rnicd::inline client
