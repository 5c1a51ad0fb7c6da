#include "daemon/core/region/session_regions.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "daemon/core/region/fast_region.h"
#include "daemon/core/request/lease.h"

namespace rnicd::core {

// The exporter of a dma-buf, some driver, decides how long the card's calls on it take: they are a worker's, whatever
// the length. So is the registration, below.
bool SessionRegions::EndsSlowly(const MemoryRegion& region) const {
  return region.is_over_dmabuf() || requests_.IsSlow(region.registered_length());
}

absl::StatusOr<MemoryRegionId> SessionRegions::Create(ProtectionDomainId id, bool fast_register) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<ProtectionDomain> domain, FindIn(domains_, id, "pd_id"));
  if (!fast_register) {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<OrdinaryRegion> region, NewOrdinary(std::move(domain)));
    return table_.Insert(std::move(region));
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kRegions));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<FastRegion> region, FastRegion::Create(std::move(domain), std::move(charge)));
  return table_.Insert(std::move(region));
}

absl::StatusOr<std::shared_ptr<OrdinaryRegion>> SessionRegions::NewOrdinary(
    std::shared_ptr<ProtectionDomain> domain) const {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kRegions));
  return OrdinaryRegion::Create(std::move(domain), std::move(charge), lease_.tenant().tally(), node_.observer,
                                node_.clock);
}

absl::StatusOr<std::shared_ptr<Charge>> SessionRegions::PendingIf(bool pends) const {
  return pends ? requests_.TakeOne(Resource::kPendingRequests) : nullptr;
}

template <typename T, typename Finish>
MaybePending<T> SessionRegions::FinishHereOrLater(std::shared_ptr<Charge> pending, const Asked<T>& asked,
                                                  Finish finish) {
  if (pending == nullptr) {
    return finish(absl::OkStatus());
  }
  const Done<T> report = requests_.Report<T>(asked.kind, asked.id.value, asked.choice, std::move(pending), asked.done);
  requests_.RunOnWorker([report, job = std::make_shared<Finish>(std::move(finish))](const absl::Status& start) {
    // Ends after the report, and with it the request's hold.
    Finish ending = std::move(*job);
    report(ending(start));
  });
  return MaybePending<T>::Pending();
}

absl::StatusOr<SessionRegions::RegisterJob> SessionRegions::AdmitRegister(const RegisterArguments& arguments) {
  RNICD_RETURN_IF_ERROR(requests_.CheckNotDraining());
  RegisterJob job;
  RNICD_ASSIGN_OR_RETURN(job.region, FindAs<OrdinaryRegion>(arguments.region));
  RNICD_ASSIGN_OR_RETURN(const AccessRights rights, AccessRightsFromMrFlags(arguments.flags));
  const MemoryLookup find_memory = [this](MemoryObjectId id) { return memory_.Find(id); };
  RNICD_ASSIGN_OR_RETURN(MappedRange range, ResolveMdlChain(arguments.chain, arguments.length, find_memory));
  RNICD_ASSIGN_OR_RETURN(job.pending, PendingIf(requests_.IsSlow(arguments.length) || range.dmabuf.has_value()));
  RNICD_ASSIGN_OR_RETURN(job.request, job.region->BeginRegister(std::move(range), rights, ledger_));
  return job;
}

MaybePending<Registration> SessionRegions::Register(const RegisterArguments& arguments, PendingChoice choice,
                                                    const Done<Registration>& done) {
  absl::StatusOr<RegisterJob> admitted = AdmitRegister(arguments);
  if (!admitted.ok()) {
    lease_.tenant().tally()->CountRegistration(false);
    node_.observer.Report(RegistrationEnded{.status = admitted.status()});
    return admitted.status();
  }
  lease_.CountBytes(arguments.length, kRegisteredBytesPerRequest);
  return FinishHereOrLater(std::move(admitted->pending),
                           Asked<Registration>{RequestKind::kRegisterMr, arguments.region, choice, done},
                           [region = std::move(admitted->region), request = std::move(admitted->request)](
                               const absl::Status& start) mutable { return region->FinishRegister(request, start); });
}

MaybePending<> SessionRegions::Deregister(MemoryRegionId id, PendingChoice choice, const Done<>& done) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<OrdinaryRegion> region, FindAs<OrdinaryRegion>(id));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> pending, PendingIf(EndsSlowly(*region)));
  RNICD_ASSIGN_OR_RETURN(OrdinaryRegion::DeregisterRequest request, region->BeginDeregister());
  return FinishHereOrLater(std::move(pending), Asked<>{RequestKind::kDeregisterMr, id, choice, done},
                           [region = std::move(region), request = std::move(request)](
                               const absl::Status& start) mutable { return region->FinishDeregister(request, start); });
}

MaybePending<> SessionRegions::Initialize(const InitializeArguments& arguments, PendingChoice choice,
                                          const Done<>& done) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<FastRegion> region, FindAs<FastRegion>(arguments.region));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> pending,
                         PendingIf(requests_.IsSlow(arguments.max_pages * kNdkPageBytes)));
  RNICD_ASSIGN_OR_RETURN(FastRegion::InitializeRequest request,
                         region->BeginInitialize(arguments.max_pages, arguments.remote_access, ledger_));
  return FinishHereOrLater(
      std::move(pending), Asked<>{RequestKind::kInitializeFastRegisterMr, arguments.region, choice, done},
      [region = std::move(region), request = std::move(request)](const absl::Status& start) mutable {
        return region->FinishInitialize(request, start);
      });
}

// The id is dead at once; the region is closed when its last request is complete.
MaybePending<> SessionRegions::Close(MemoryRegionId id, PendingChoice choice, const Done<>& done) {
  const std::shared_ptr<MemoryRegion> region = table_.Remove(id);
  if (region == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  }
  // The close of a large region is left to a worker: the thread that releases the last hold does the work.
  std::shared_ptr<Closable::Hold> last_hold;
  if (EndsSlowly(*region)) {
    RNICD_ASSIGN_OR_RETURN(Closable::Hold hold, region->Acquire());
    last_hold = std::make_shared<Closable::Hold>(std::move(hold));
  }
  MaybePending<> closed = CloseRemoved(*region, ReportClose(RequestKind::kCloseMr, id, choice, *region, done));
  if (closed.ok() && last_hold != nullptr) {
    requests_.RunOnWorker([last_hold](const absl::Status& /*start*/) { last_hold->Release(); });
  }
  return closed;
}

uint64_t SessionRegions::RegisteredBytes(MemoryRegionId id) {
  const std::shared_ptr<MemoryRegion> region = table_.Find(id);
  return region != nullptr ? region->registered_length() : 0;
}

absl::StatusOr<LocalToken> SessionRegions::GetLocalToken(MemoryRegionId id) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryRegion> region, FindIn(table_, id, "mr_id"));
  absl::StatusOr<LocalToken> token = region->GetLocalToken();
  node_.observer.Report(TokensIssued{.local = token.ok() ? 1U : 0U});
  return token;
}

absl::StatusOr<RemoteToken> SessionRegions::GetRemoteToken(MemoryRegionId id) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryRegion> region, FindIn(table_, id, "mr_id"));
  absl::StatusOr<RemoteToken> token = region->GetRemoteToken();
  node_.observer.Report(TokensIssued{.remote = token.ok() ? 1U : 0U});
  return token;
}

}  // namespace rnicd::core
