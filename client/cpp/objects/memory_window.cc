#include "client/cpp/memory_window.h"

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/objects/close_now.h"
#include "client/cpp/session/connection.h"

namespace rnicd::inline client {
namespace {

v1::CloseMwRequest CloseRequest(MemoryWindowId id) {
  v1::CloseMwRequest request;
  request.set_mw_id(id.value);
  return request;
}

}  // namespace

// Id of the window in the daemon.
struct MemoryWindow::Open {
  ~Open() {
    if (!closed && id != MemoryWindowId{}) {
      connection->Release(kCloseMw, CloseRequest(id));
    }
  }

  std::shared_ptr<Connection> connection;
  MemoryWindowId id;
  bool closed = false;
};

absl::StatusOr<MemoryWindow> MemoryWindow::Create(const Client& client) {
  const auto open = std::make_shared<Open>();
  open->connection = client.connection();
  if (open->connection == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const ProtectionDomainId domain, open->connection->ProtectionDomain());
  v1::CreateMwRequest request;
  request.set_pd_id(domain.value);
  RNICD_ASSIGN_OR_RETURN(const v1::CreateMwResponse response, open->connection->Call(kCreateMw, request));
  open->id = MemoryWindowId{response.mw_id()};
  return MemoryWindow(open);
}

MemoryWindowId MemoryWindow::id() const { return open_ == nullptr ? MemoryWindowId{} : open_->id; }

absl::StatusOr<RemoteToken> MemoryWindow::GetRemoteToken() const {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::GetRemoteTokenFromMwRequest request;
  request.set_mw_id(open_->id.value);
  RNICD_ASSIGN_OR_RETURN(const v1::GetRemoteTokenFromMwResponse response,
                         open_->connection->Call(kGetRemoteTokenFromMw, request));
  return RemoteToken{response.remote_token()};
}

absl::Status MemoryWindow::Close() { return CloseNow(open_, kCloseMw, CloseRequest); }

}  // namespace rnicd::inline client
