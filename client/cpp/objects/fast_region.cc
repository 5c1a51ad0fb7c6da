#include "client/cpp/fast_region.h"

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/objects/close_now.h"
#include "client/cpp/objects/region_requests.h"
#include "client/cpp/session/connection.h"

namespace rnicd::inline client {

// Id of the region in the daemon.
struct FastRegion::Open {
  ~Open() {
    if (!closed && id != MemoryRegionId{}) {
      connection->Release(kCloseMr, CloseRequest(id));
    }
  }

  std::shared_ptr<Connection> connection;
  MemoryRegionId id;
  LocalToken local_token;
  bool closed = false;
};

absl::StatusOr<FastRegion> FastRegion::Create(const Client& client, const FastRegionOptions& options) {
  const auto open = std::make_shared<Open>();
  open->connection = client.connection();
  if (open->connection == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const ProtectionDomainId domain, open->connection->ProtectionDomain());
  v1::CreateMrRequest create = CreateRequest(domain);
  create.set_fast_register(true);
  RNICD_ASSIGN_OR_RETURN(const v1::CreateMrResponse created, open->connection->Call(kCreateMr, create));
  open->id = MemoryRegionId{created.mr_id()};
  v1::InitializeFastRegisterMrRequest initialize;
  initialize.set_mr_id(open->id.value);
  initialize.set_adapter_page_count(options.max_pages);
  initialize.set_remote_access(options.remote_access);
  RNICD_RETURN_IF_ERROR(open->connection->Call(kInitializeFastRegisterMr, initialize).status());
  v1::GetLocalTokenRequest get_token;
  get_token.set_mr_id(open->id.value);
  RNICD_ASSIGN_OR_RETURN(const v1::GetLocalTokenResponse got, open->connection->Call(kGetLocalToken, get_token));
  open->local_token = LocalToken{got.local_token()};
  return FastRegion(open);
}

MemoryRegionId FastRegion::id() const { return open_ == nullptr ? MemoryRegionId{} : open_->id; }

LocalToken FastRegion::local_token() const { return open_ == nullptr ? LocalToken{} : open_->local_token; }

absl::StatusOr<RemoteToken> FastRegion::GetRemoteToken() const {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  if (auto token = open_->connection->rings().GetRemoteToken(open_->id); token.has_value()) {
    return *std::move(token);
  }
  v1::GetRemoteTokenRequest request;
  request.set_mr_id(open_->id.value);
  RNICD_ASSIGN_OR_RETURN(const v1::GetRemoteTokenResponse response, open_->connection->Call(kGetRemoteToken, request));
  return RemoteToken{response.remote_token()};
}

absl::Status FastRegion::Close() { return CloseNow(open_, kCloseMr, CloseRequest); }

}  // namespace rnicd::inline client
