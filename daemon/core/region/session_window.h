#pragma once

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/region/memory_window.h"
#include "daemon/core/region/session_domains.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

// The memory windows of a session.
class SessionWindows final : public SessionObjects<MemoryWindowId, MemoryWindow> {
 public:
  SessionWindows(SessionRequests& requests, const SessionDomains& domains)
      : SessionObjects(requests), domains_(domains.table()) {}

  absl::StatusOr<MemoryWindowId> Create(ProtectionDomainId id);
  absl::StatusOr<RemoteToken> GetRemoteToken(MemoryWindowId id);
  MaybePending<> Close(MemoryWindowId id, PendingChoice choice, const Done<>& done);

 private:
  const SessionDomains::Table& domains_;
};

}  // namespace rnicd::core
