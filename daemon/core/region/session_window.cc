#include "daemon/core/region/session_window.h"

#include <memory>
#include <utility>

#include "base/status.h"

namespace rnicd::core {

absl::StatusOr<MemoryWindowId> SessionWindows::Create(ProtectionDomainId id) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<ProtectionDomain> domain, FindIn(domains_, id, "pd_id"));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kWindows));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<MemoryWindow> window,
                         MemoryWindow::Create(std::move(domain), std::move(charge)));
  return table_.Insert(std::move(window));
}

absl::StatusOr<RemoteToken> SessionWindows::GetRemoteToken(MemoryWindowId id) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryWindow> window, FindIn(table_, id, "mw_id"));
  return window->GetRemoteToken();
}

MaybePending<> SessionWindows::Close(MemoryWindowId id, PendingChoice choice, const Done<>& done) {
  const std::shared_ptr<MemoryWindow> window = table_.Remove(id);
  if (window == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "mw_id");
  }
  return CloseRemoved(*window, ReportClose(RequestKind::kCloseMw, id, choice, *window, done));
}

}  // namespace rnicd::core
