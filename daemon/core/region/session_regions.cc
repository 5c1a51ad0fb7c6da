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

absl::StatusOr<SessionRegions::RegisterJob> SessionRegions::AdmitRegister(const RegisterArguments& arguments,
                                                                          PendingChoice choice,
                                                                          const Done<Registration>& done) {
  RNICD_RETURN_IF_ERROR(requests_.CheckNotDraining());
  RegisterJob job;
  RNICD_ASSIGN_OR_RETURN(job.region, FindAs<OrdinaryRegion>(arguments.region));
  RNICD_ASSIGN_OR_RETURN(const AccessRights rights, AccessRightsFromMrFlags(arguments.flags));
  const MemoryLookup find_memory = [this](MemoryObjectId id) { return memory_.Find(id); };
  RNICD_ASSIGN_OR_RETURN(MappedRange range, ResolveMdlChain(arguments.chain, arguments.length, find_memory));
  if (requests_.IsSlow(arguments.length) || range.dmabuf.has_value()) {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kPendingRequests));
    job.report = requests_.Report<Registration>(RequestKind::kRegisterMr, arguments.region.value, choice,
                                                std::move(charge), done);
  }
  RNICD_ASSIGN_OR_RETURN(job.request, job.region->BeginRegister(std::move(range), rights, ledger_));
  return job;
}

MaybePending<Registration> SessionRegions::Register(const RegisterArguments& arguments, PendingChoice choice,
                                                    const Done<Registration>& done) {
  absl::StatusOr<RegisterJob> admitted = AdmitRegister(arguments, choice, done);
  if (!admitted.ok()) {
    lease_.tenant().tally()->CountRegistration(false);
    node_.observer.Report(RegistrationEnded{.status = admitted.status()});
    return admitted.status();
  }
  lease_.CountBytes(arguments.length, kRegisteredBytesPerRequest);
  if (admitted->report == nullptr) {
    return admitted->region->FinishRegister(std::move(admitted->request), absl::OkStatus());
  }
  auto job = std::make_shared<RegisterJob>(*std::move(admitted));
  requests_.RunOnWorker(
      [job](const absl::Status& start) { job->report(job->region->FinishRegister(std::move(job->request), start)); });
  return MaybePending<Registration>::Pending();
}

MaybePending<> SessionRegions::Deregister(MemoryRegionId id, PendingChoice choice, const Done<>& done) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<OrdinaryRegion> region, FindAs<OrdinaryRegion>(id));
  if (!EndsSlowly(*region)) {
    RNICD_ASSIGN_OR_RETURN(OrdinaryRegion::DeregisterRequest request, region->BeginDeregister());
    RNICD_RETURN_IF_ERROR(region->FinishDeregister(std::move(request), absl::OkStatus()));
    return absl::OkStatus();
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kPendingRequests));
  RNICD_ASSIGN_OR_RETURN(OrdinaryRegion::DeregisterRequest begun, region->BeginDeregister());
  auto request = std::make_shared<OrdinaryRegion::DeregisterRequest>(std::move(begun));
  const Done<> report = requests_.Report<void>(RequestKind::kDeregisterMr, id.value, choice, std::move(charge), done);
  requests_.RunOnWorker([region, request, report](const absl::Status& start) {
    report(region->FinishDeregister(std::move(*request), start));
  });
  return MaybePending<>::Pending();
}

MaybePending<> SessionRegions::Initialize(const InitializeArguments& arguments, PendingChoice choice,
                                          const Done<>& done) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<FastRegion> region, FindAs<FastRegion>(arguments.region));
  std::shared_ptr<Charge> pending;
  if (requests_.IsSlow(arguments.max_pages * kNdkPageBytes)) {
    RNICD_ASSIGN_OR_RETURN(pending, requests_.TakeOne(Resource::kPendingRequests));
  }
  RNICD_ASSIGN_OR_RETURN(FastRegion::InitializeRequest begun,
                         region->BeginInitialize(arguments.max_pages, arguments.remote_access, ledger_));
  if (pending == nullptr) {
    RNICD_RETURN_IF_ERROR(region->FinishInitialize(std::move(begun), absl::OkStatus()));
    return absl::OkStatus();
  }
  auto request = std::make_shared<FastRegion::InitializeRequest>(std::move(begun));
  const Done<> report = requests_.Report<void>(RequestKind::kInitializeFastRegisterMr, arguments.region.value, choice,
                                               std::move(pending), done);
  requests_.RunOnWorker([region, request, report](const absl::Status& start) {
    report(region->FinishInitialize(std::move(*request), start));
  });
  return MaybePending<>::Pending();
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
