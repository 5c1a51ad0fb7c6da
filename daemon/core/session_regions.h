#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/mdl_chain.h"
#include "daemon/core/memory_region.h"
#include "daemon/core/session_domains.h"
#include "daemon/core/session_memory.h"
#include "daemon/core/session_objects.h"

namespace rnicd::core {

struct RegisterArguments {
  MemoryRegionId region;
  std::span<const MdlEntry> chain;
  uint64_t length = 0;
  // NDK_MR_FLAG_ bits, not yet checked.
  uint32_t flags = 0;
};

struct InitializeArguments {
  MemoryRegionId region;
  uint32_t max_pages = 0;
  bool remote_access = false;
};

// The memory regions of a session, of both kinds.
class SessionRegions final : public SessionObjects<MemoryRegionId, MemoryRegion> {
 public:
  SessionRegions(SessionRequests& requests, const SessionDomains& domains, const SessionMemory& memory)
      : SessionObjects(requests), domains_(domains.table()), memory_(memory.table()) {}

  absl::StatusOr<MemoryRegionId> Create(ProtectionDomainId id, bool fast_register);
  MaybePending<Registration> Register(const RegisterArguments& arguments, PendingChoice choice,
                                      const Done<Registration>& done);
  MaybePending<> Deregister(MemoryRegionId id, PendingChoice choice, const Done<>& done);
  // Initializes a region of the fast kind.
  MaybePending<> Initialize(const InitializeArguments& arguments, PendingChoice choice, const Done<>& done);
  MaybePending<> Close(MemoryRegionId id, PendingChoice choice, const Done<>& done);
  absl::StatusOr<LocalToken> GetLocalToken(MemoryRegionId id);
  absl::StatusOr<RemoteToken> GetRemoteToken(MemoryRegionId id);

 private:
  // A registration that was admitted. Without `report` it must be finished synchronously.
  struct RegisterJob {
    std::shared_ptr<MemoryRegion> region;
    MemoryRegion::RegisterRequest request;
    Done<Registration> report;
  };
  absl::StatusOr<RegisterJob> AdmitRegister(const RegisterArguments& arguments, PendingChoice choice,
                                            const Done<Registration>& done);

  const SessionDomains::Table& domains_;
  const SessionMemory::Table& memory_;
};

}  // namespace rnicd::core
