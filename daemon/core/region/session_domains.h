#pragma once

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/region/protection_domain.h"
#include "daemon/core/region/session_adapters.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

// The protection domains of a session.
class SessionDomains final : public SessionObjects<ProtectionDomainId, ProtectionDomain> {
 public:
  SessionDomains(SessionRequests& requests, const SessionAdapters& adapters)
      : SessionObjects(requests), adapters_(adapters.table()) {}

  absl::StatusOr<ProtectionDomainId> Create(AdapterId id);
  MaybePending<> Close(ProtectionDomainId id, PendingChoice choice, const Done<>& done);
  // The token for logical addresses.
  absl::StatusOr<LocalToken> GetPrivilegedMemoryRegionToken(ProtectionDomainId id);

 private:
  const SessionAdapters::Table& adapters_;
};

}  // namespace rnicd::core
