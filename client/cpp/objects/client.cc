#include "client/cpp/client.h"

#include <utility>

#include "client/cpp/objects/convert.h"
#include "client/cpp/session/connection.h"
#include "wire/adapter_info.h"

namespace rnicd::inline client {

absl::StatusOr<Client> Client::Connect(ClientOptions options) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Connection> connection, Connection::Open(std::move(options)));
  return Client(std::move(connection));
}

SessionId Client::session_id() const { return connection_ == nullptr ? SessionId{} : connection_->session_id(); }

std::string Client::tenant() const { return connection_ == nullptr ? "" : connection_->tenant(); }

absl::StatusOr<std::vector<AdapterSummary>> Client::ListAdapters() const {
  if (connection_ == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const v1::ListAdaptersResponse response, connection_->Call(kListAdapters, {}));
  std::vector<AdapterSummary> adapters;
  for (const v1::AdapterSummary& adapter : response.adapters()) {
    adapters.push_back(FromWire(adapter));
  }
  return adapters;
}

absl::StatusOr<NdkAdapterInfo> Client::QueryAdapterInfo() const {
  if (connection_ == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const AdapterId adapter, connection_->Adapter());
  v1::QueryAdapterInfoRequest request;
  request.set_adapter_id(adapter.value);
  RNICD_ASSIGN_OR_RETURN(const v1::QueryAdapterInfoResponse response, connection_->Call(kQueryAdapterInfo, request));
  return wire::FromWire(response.info());
}

absl::StatusOr<SessionUse> Client::GetSession() const {
  if (connection_ == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const v1::GetSessionResponse response, connection_->Call(kGetSession, {}));
  return FromWire(response);
}

absl::StatusOr<PrivilegedToken> Client::GetPrivilegedToken() const {
  if (connection_ == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const ProtectionDomainId domain, connection_->ProtectionDomain());
  v1::GetPrivilegedMemoryRegionTokenRequest request;
  request.set_pd_id(domain.value);
  RNICD_ASSIGN_OR_RETURN(const v1::GetPrivilegedMemoryRegionTokenResponse response,
                         connection_->Call(kGetPrivilegedMemoryRegionToken, request));
  return PrivilegedToken{response.privileged_token()};
}

absl::Status Client::Progress(std::chrono::milliseconds wait_max) const {
  if (connection_ == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  if (!connection_->options().callbacks_in_progress) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "callbacks_in_progress");
  }
  RNICD_RETURN_IF_ERROR(connection_->CheckProcess());
  connection_->events().Progress(Instant::clock::now() + wait_max);
  return absl::OkStatus();
}

absl::StatusOr<int> Client::EventDescriptor() const {
  if (connection_ == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_RETURN_IF_ERROR(connection_->CheckProcess());
  return connection_->events().Descriptor();
}

absl::StatusOr<Reclaimed> Client::Close() {
  if (connection_ == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const v1::CloseSessionResponse response, connection_->CloseSession());
  return Reclaimed{.regions = response.reclaimed_regions(),
                   .pinned_bytes = response.reclaimed_pinned_bytes(),
                   .memory_bytes = response.reclaimed_memory_bytes()};
}

}  // namespace rnicd::inline client
