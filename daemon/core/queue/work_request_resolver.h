#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/ndk/work_request.h"
#include "daemon/core/queue/queue_pair.h"
#include "daemon/core/region/fast_region.h"
#include "daemon/core/region/logical_mapping.h"
#include "daemon/core/region/memory_window.h"
#include "daemon/core/region/ordinary_region.h"
#include "daemon/core/request/object_table.h"
#include "provider/api/queue_pair.h"

namespace rnicd::core {

// A request that passed every check of posting, in the card's terms, and what must be recorded once it is accepted.
struct ResolvedRequest {
  provider::WorkRequest request;
  // Region of a FastRegister.
  std::shared_ptr<FastRegion> fast_region;
  FastRegion::FastRegistration fast_registration;
  // Window of a Bind.
  std::shared_ptr<MemoryWindow> window;
};

// The rules of posting: the checks that NDK requires when a request is posted and that are possible then. Rules that
// depend on the requests queued before are checked by the card, when it executes.
// Errors:   PostResponse.failure in queue_service.proto lists them; fields are relative to the request.
// Source:   NDK_FN_SEND, _RECEIVE, _READ, _WRITE, _FAST_REGISTER, _INVALIDATE, _BIND, _SEND_AND_INVALIDATE.
class WorkRequestResolver {
 public:
  // All of it outlives the resolver, which serves one chain.
  WorkRequestResolver(const QueuePair& pair, const ObjectTable<MemoryRegionId, MemoryRegion>& regions,
                      const ObjectTable<MemoryWindowId, MemoryWindow>& windows, const LogicalAddressSpace& addresses,
                      const std::shared_ptr<Ledger>& ledger)
      : pair_(pair), regions_(regions), windows_(windows), addresses_(addresses), ledger_(ledger) {}

  absl::StatusOr<ResolvedRequest> Resolve(const WorkRequest& request) const;

 private:
  struct Visitor;
  // Constraints on a payload, and its purpose.
  struct PayloadRules {
    std::string_view operation;
    uint32_t max_entries = 0;
    bool may_be_inline = false;
    bool is_read_sink = false;
  };

  const Adapter& adapter() const { return pair_.domain()->adapter(); }
  absl::Status ResolvePayload(const Sges& sges, uint32_t flags, const PayloadRules& rules,
                              provider::WorkRequest& out) const;
  absl::Status ResolveInline(const Sges& sges, std::string_view operation, provider::WorkRequest& out) const;
  // Charges the heap bytes of the pieces of memory that a request keeps.
  absl::StatusOr<Charge> TakePieces(size_t pieces) const;
  // Appends the pieces of memory behind a logical address. Returns what keeps them.
  absl::StatusOr<std::shared_ptr<const void>> ResolveHost(const Sge& sge, provider::Entries& entries) const;
  absl::Status ResolveFastRegister(const WorkRequest::FastRegister& operation, uint32_t flags,
                                   ResolvedRequest& out) const;
  absl::Status ResolveInvalidate(const WorkRequest::Invalidate& operation, ResolvedRequest& out) const;
  absl::Status ResolveBind(const WorkRequest::Bind& operation, uint32_t flags, ResolvedRequest& out) const;

  // The object with that id in the queue pair's domain.
  // Errors: OBJECT_NOT_FOUND, DOMAIN_MISMATCH.
  template <typename Id, typename T>
  absl::StatusOr<std::shared_ptr<T>> FindHere(const ObjectTable<Id, T>& table, Id id, std::string_view field) const;
  // A region of the kind that the operation is for.
  // Errors: as FindHere; REGION_WRONG_KIND.
  template <typename Kind>
  absl::StatusOr<std::shared_ptr<Kind>> FindAs(MemoryRegionId id, std::string_view field) const;

  const QueuePair& pair_;
  const ObjectTable<MemoryRegionId, MemoryRegion>& regions_;
  const ObjectTable<MemoryWindowId, MemoryWindow>& windows_;
  const LogicalAddressSpace& addresses_;
  const std::shared_ptr<Ledger>& ledger_;
};

}  // namespace rnicd::core
