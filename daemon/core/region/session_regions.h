#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/memory/mdl_chain.h"
#include "daemon/core/memory/session_memory.h"
#include "daemon/core/region/memory_region.h"
#include "daemon/core/region/ordinary_region.h"
#include "daemon/core/region/session_domains.h"
#include "daemon/core/region/session_provision.h"
#include "daemon/core/request/request_turns.h"
#include "daemon/core/request/session_objects.h"

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
  SessionRegions(SessionRequests& requests, const SessionDomains& domains, SessionMemory& memory)
      : SessionObjects(requests), domains_(domains.table()), objects_(memory), memory_(memory.table()) {}

  absl::StatusOr<MemoryRegionId> Create(ProtectionDomainId id, bool fast_register);
  MaybePending<Registration> Register(const RegisterArguments& arguments, PendingChoice choice,
                                      const Done<Registration>& done);
  MaybePending<> Deregister(MemoryRegionId id, PendingChoice choice, const Done<>& done);
  // Initializes a region of the fast kind.
  MaybePending<> Initialize(const InitializeArguments& arguments, PendingChoice choice, const Done<>& done);
  MaybePending<> Close(MemoryRegionId id, PendingChoice choice, const Done<>& done);
  // Bytes that the region has registered; 0 if there is none with that id.
  uint64_t RegisteredBytes(MemoryRegionId id);
  absl::StatusOr<LocalToken> GetLocalToken(MemoryRegionId id);
  absl::StatusOr<RemoteToken> GetRemoteToken(MemoryRegionId id);

  // Seals the memory object unless it is sealed, and makes a registered region of each range. A range that is refused
  // leaves nothing. Few small ranges of sealed memory are registered at once; otherwise it pends, on workers. The end
  // of the session leaves the rest undone.
  MaybePending<Provisioned> Provision(ProvisionArguments arguments, Done<Provisioned> done);
  // Closes the regions: their ids never reached the client.
  void Drop(const Provisioned& provisioned);

 private:
  struct Provisioning;
  // A registration that was admitted.
  struct RegisterJob {
    std::shared_ptr<OrdinaryRegion> region;
    OrdinaryRegion::RegisterRequest request;
    // Null unless it takes so long that it must pend.
    std::shared_ptr<Charge> pending;
  };
  // The caller's options for a request that may pend.
  template <typename T = void>
  struct Asked {
    RequestKind kind;
    MemoryRegionId id;
    PendingChoice choice;
    const Done<T>& done;
  };
  absl::StatusOr<std::shared_ptr<OrdinaryRegion>> NewOrdinary(std::shared_ptr<ProtectionDomain> domain) const;
  template <typename Kind>
  absl::StatusOr<std::shared_ptr<Kind>> FindAs(MemoryRegionId id) const {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<MemoryRegion> region, FindIn(table_, id, "mr_id"));
    return RegionAs<Kind>(std::move(region));
  }
  bool EndsSlowly(const MemoryRegion& region) const;
  absl::StatusOr<RegisterJob> AdmitRegister(const RegisterArguments& arguments);
  // The charge of a request that pends; null where it does not.
  absl::StatusOr<std::shared_ptr<Charge>> PendingIf(bool pends) const;
  // Ends a request that has begun: at once, or with the charge on a worker.
  template <typename T, typename Finish>
  MaybePending<T> FinishHereOrLater(std::shared_ptr<Charge> pending, const Asked<T>& asked, Finish finish);

  MaybePending<Provisioned> SealThenProvision(const std::shared_ptr<Provisioning>& job, ItemPlan plan);
  ItemPlan PlanOf(const std::shared_ptr<Provisioning>& job);
  void ProvisionSome(Provisioning& job, uint32_t first, uint32_t end);
  absl::StatusOr<RegisterJob> AdmitProvision(const Provisioning& job, const ProvisionRange& range,
                                             const MemoryLookup& find_memory);
  absl::StatusOr<ProvisionedRegion> ProvisionOne(const Provisioning& job, const ProvisionRange& range,
                                                 const MemoryLookup& find_memory);

  const SessionDomains::Table& domains_;
  SessionMemory& objects_;
  const SessionMemory::Table& memory_;
};

}  // namespace rnicd::core
