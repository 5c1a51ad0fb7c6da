// SessionRegions::Provision: a memory object's ranges become regions in one request.
#include "daemon/core/session_provision.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "daemon/core/request_cost.h"
#include "daemon/core/session.h"

namespace rnicd::core {
namespace {

// What is registered before other owners have their turn, and before the end of the session is noticed: about half a
// millisecond on the soft card. A call with more does not run on the thread of its connection.
constexpr size_t kRegionsOfTurn = 256;

// The error of a range in the words of its request, not of an MDL chain.
absl::Status InWordsOfRange(const absl::Status& status) {
  constexpr std::string_view kOfEntry = "mdl_chain[0].";
  ErrorInfo info = ErrorInfoOf(status);
  const bool is_of_entry = info.field.starts_with(kOfEntry);
  if (!is_of_entry && !info.field.ends_with("_id")) {
    return status;
  }
  info.field.erase(0, is_of_entry ? kOfEntry.size() : info.field.size());
  if (info.field == "byte_count") {
    info.field = "length";
  }
  return MakeError(info);
}

}  // namespace

// A request in progress. One thread at a time has it.
struct SessionRegions::Provisioning {
  std::shared_ptr<ProtectionDomain> domain;
  std::shared_ptr<MemoryObject> memory;
  std::vector<ProvisionRange> ranges;
  Provisioned provisioned;
  // Null unless it pends.
  std::shared_ptr<Charge> pending;
  Done<Provisioned> done;

  bool complete() const { return provisioned.outcomes.size() == ranges.size(); }
  const ProvisionRange& next() const { return ranges[provisioned.outcomes.size()]; }
  void Finish(const absl::Status& status) {
    pending->Refund();
    done(status.ok() ? absl::StatusOr<Provisioned>(std::move(provisioned)) : status);
  }
};

MaybePending<Provisioned> SessionRegions::Provision(ProvisionArguments arguments, Done<Provisioned> done) {
  RNICD_RETURN_IF_ERROR(requests_.CheckNotDraining());
  const auto job = std::make_shared<Provisioning>();
  RNICD_ASSIGN_OR_RETURN(job->domain, FindIn(domains_, arguments.domain, "pd_id"));
  RNICD_RETURN_IF_ERROR(job->domain->Acquire().status());
  RNICD_ASSIGN_OR_RETURN(job->memory, objects_.Find(arguments.memory));
  job->ranges = std::move(arguments.ranges);
  job->provisioned.outcomes.reserve(job->ranges.size());
  const bool is_sealed = job->memory->BeginUse().ok();
  if (is_sealed && !IsSlow(*job)) {
    ProvisionSome(*job);
    return std::move(job->provisioned);
  }
  RNICD_ASSIGN_OR_RETURN(job->pending, requests_.TakeOne(Resource::kPendingRequests));
  job->done = std::move(done);
  if (is_sealed) {
    RNICD_ASSIGN_OR_RETURN(SessionGuard guard, session_.Begin());
    QueueProvisioning(job, std::make_shared<SessionGuard>(std::move(guard)));
    return MaybePending<Provisioned>::Pending();
  }
  return SealThenProvision(job);
}

MaybePending<Provisioned> SessionRegions::SealThenProvision(const std::shared_ptr<Provisioning>& job) {
  // The thread that has sealed the file has work of other owners to do, so a worker goes on.
  const Done<> go_on = [this, job](const absl::Status& sealed) {
    absl::StatusOr<SessionGuard> guard = session_.Begin();
    if (!sealed.ok() || !guard.ok()) {
      job->Finish(sealed.ok() ? guard.status() : sealed);
      return;
    }
    QueueProvisioning(job, std::make_shared<SessionGuard>(*std::move(guard)));
  };
  const MaybePending<> sealing = objects_.Seal(job->memory, go_on);
  // Sealed by another request since it was looked at.
  const bool is_sealed = sealing.succeeded() || FailedWith(sealing.status(), ErrorReason::MEMORY_ALREADY_SEALED);
  if (!sealing.pending() && !is_sealed) {
    return sealing.status();
  }
  if (is_sealed) {
    go_on(absl::OkStatus());
  }
  return MaybePending<Provisioned>::Pending();
}

bool SessionRegions::IsSlow(const Provisioning& job) const {
  uint64_t bytes = 0;
  for (const ProvisionRange& range : job.ranges) {
    // A length beyond the memory is refused. Stopping early keeps the sum from overflowing.
    bytes += std::min(range.length, job.memory->size());
    if (requests_.IsSlow(bytes)) {
      return true;
    }
  }
  return job.ranges.size() > kRegionsOfTurn;
}

// A turn, and then to the end of the owner's line.
void SessionRegions::QueueProvisioning(const std::shared_ptr<Provisioning>& job,
                                       const std::shared_ptr<SessionGuard>& held) {
  requests_.RunHeld(node_.workers, held, [this, job, held](const absl::Status& start) {
    if (start.ok()) {
      ProvisionSome(*job);
    }
    if (!start.ok() || job->complete()) {
      job->Finish(start);
    } else {
      QueueProvisioning(job, held);
    }
  });
}

// A region that is slow to register ends the turn.
void SessionRegions::ProvisionSome(Provisioning& job) {
  Provisioned& provisioned = job.provisioned;
  provisioned.size = job.memory->size();
  provisioned.page_bytes = job.memory->page_bytes();
  const MemoryLookup find_memory = [&job](MemoryObjectId /*id*/) { return job.memory; };
  uint64_t bytes = 0;
  uint64_t regions = 0;
  for (; regions < kRegionsOfTurn && !requests_.IsSlow(bytes) && !job.complete(); ++regions) {
    const ProvisionRange& range = job.next();
    provisioned.outcomes.push_back(ProvisionOne(job, range, find_memory));
    bytes += provisioned.outcomes.back().ok() ? range.length : 0;
  }
  requests_.CountBytes(bytes, kRegisteredBytesPerRequest);
  requests_.CountBytes(regions, kProvisionedRegionsPerRequest);
}

absl::StatusOr<SessionRegions::RegisterJob> SessionRegions::AdmitProvision(const Provisioning& job,
                                                                           const ProvisionRange& range,
                                                                           const MemoryLookup& find_memory) {
  RegisterJob admitted;
  RNICD_ASSIGN_OR_RETURN(const AccessRights rights, AccessRightsFromMrFlags(range.flags));
  const MdlEntry entry{.byte_offset = range.byte_offset, .byte_count = range.length, .virtual_address = range.address};
  RNICD_ASSIGN_OR_RETURN(MappedRange mapped, ResolveMdlChain(std::span(&entry, 1), range.length, find_memory));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kRegions));
  RNICD_ASSIGN_OR_RETURN(admitted.region,
                         MemoryRegion::Create(job.domain, /*fast_register=*/false, std::move(charge),
                                              requests_.tenant().tally(), node_.observer, node_.clock));
  RNICD_ASSIGN_OR_RETURN(admitted.request, admitted.region->BeginRegister(std::move(mapped), rights, ledger_));
  return admitted;
}

// The region gets its id last: nobody can name one that failed.
absl::StatusOr<ProvisionedRegion> SessionRegions::ProvisionOne(const Provisioning& job, const ProvisionRange& range,
                                                               const MemoryLookup& find_memory) {
  absl::StatusOr<RegisterJob> admitted = AdmitProvision(job, range, find_memory);
  if (!admitted.ok()) {
    requests_.tenant().tally()->CountRegistration(false);
    node_.observer.Report(RegistrationEnded{.status = admitted.status()});
    return InWordsOfRange(admitted.status());
  }
  const absl::StatusOr<Registration> registration =
      admitted->region->FinishRegister(std::move(admitted->request), absl::OkStatus());
  if (!registration.ok()) {
    return InWordsOfRange(registration.status());
  }
  return ProvisionedRegion{.id = table_.Insert(std::move(admitted->region)),
                           .local_token = registration->local_token,
                           .remote_token = registration->remote_token};
}

void SessionRegions::Drop(const Provisioned& provisioned) {
  for (const absl::StatusOr<ProvisionedRegion>& outcome : provisioned.outcomes) {
    if (outcome.ok()) {
      (void)Close(outcome->id, {}, [](const absl::Status& /*closed*/) {});
    }
  }
}

}  // namespace rnicd::core
