// SessionRegions::Provision: a memory object's ranges become regions in one request.
#include "daemon/core/region/session_regions.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "daemon/core/request/lease.h"

namespace rnicd::core {
namespace {

// The error of a range in the words of its request, not of an MDL chain.
absl::Status InWordsOfRange(const absl::Status& status) {
  constexpr std::string_view kOfEntry = "mdl_chain[0].";
  std::string field = ErrorInfoOf(status).field;
  const bool is_of_entry = field.starts_with(kOfEntry);
  if (!is_of_entry && !field.ends_with("_id")) {
    return status;
  }
  field.erase(0, is_of_entry ? kOfEntry.size() : field.size());
  return WithField(status, field == "byte_count" ? "length" : field);
}

}  // namespace

// A request in progress. Each range has its own outcome, so that several threads may have some.
struct SessionRegions::Provisioning {
  std::shared_ptr<ProtectionDomain> domain;
  std::shared_ptr<MemoryObject> memory;
  std::vector<ProvisionRange> ranges;
  Provisioned provisioned;
  // Null unless it pends.
  std::shared_ptr<Charge> pending;
  Done<Provisioned> done;
  // The session ended before all was done.
  std::atomic<bool> ended{false};

  Provisioned Take() {
    provisioned.size = memory->size();
    provisioned.page_bytes = memory->page_bytes();
    return std::move(provisioned);
  }
  void Finish(const absl::Status& status) {
    pending->Refund();
    done(status.ok() ? absl::StatusOr<Provisioned>(Take()) : status);
  }
};

MaybePending<Provisioned> SessionRegions::Provision(ProvisionArguments arguments, Done<Provisioned> done) {
  RNICD_RETURN_IF_ERROR(requests_.CheckNotDraining());
  const auto job = std::make_shared<Provisioning>();
  RNICD_ASSIGN_OR_RETURN(job->domain, FindIn(domains_, arguments.domain, "pd_id"));
  RNICD_RETURN_IF_ERROR(job->domain->Acquire().status());
  RNICD_ASSIGN_OR_RETURN(job->memory, objects_.Find(arguments.memory));
  job->ranges = std::move(arguments.ranges);
  job->provisioned.outcomes.resize(job->ranges.size());
  const bool is_sealed = job->memory->BeginUse().ok();
  ItemPlan plan = PlanOf(job);
  if (is_sealed && !RequestTurns::IsLong(requests_, plan)) {
    RequestTurns::Run(requests_, std::move(plan));
    return job->Take();
  }
  RNICD_ASSIGN_OR_RETURN(job->pending, requests_.TakeOne(Resource::kPendingRequests));
  job->done = std::move(done);
  plan.done = [job] { job->Finish(job->ended ? MakeError(ErrorReason::SESSION_ENDING) : absl::OkStatus()); };
  if (is_sealed) {
    RequestTurns::Queue(requests_, std::move(plan));
    return MaybePending<Provisioned>::Pending();
  }
  return SealThenProvision(job, std::move(plan));
}

MaybePending<Provisioned> SessionRegions::SealThenProvision(const std::shared_ptr<Provisioning>& job, ItemPlan plan) {
  // The thread that has sealed the file has work of other owners to do, so a worker continues.
  const Done<> go_on = [this, job, plan = std::move(plan)](const absl::Status& sealed) {
    const absl::StatusOr<SessionGuard> guard = lease_.Begin();
    if (!sealed.ok() || !guard.ok()) {
      job->Finish(sealed.ok() ? guard.status() : sealed);
      return;
    }
    RequestTurns::Queue(requests_, plan);
  };
  const MaybePending<> sealing = objects_.Seal(job->memory, go_on);
  // Another request has sealed it since the check.
  const bool is_sealed = sealing.succeeded() || FailedWith(sealing.status(), ErrorReason::MEMORY_ALREADY_SEALED);
  if (!sealing.pending() && !is_sealed) {
    return sealing.status();
  }
  if (is_sealed) {
    go_on(absl::OkStatus());
  }
  return MaybePending<Provisioned>::Pending();
}

ItemPlan SessionRegions::PlanOf(const std::shared_ptr<Provisioning>& job) {
  return {.items = static_cast<uint32_t>(job->ranges.size()),
          .threads = node_.registering_threads,
          .bytes_of =
              [job](uint32_t index) {
                // The exporter of a dma-buf, some driver, decides how long a registration takes.
                return job->memory->is_dmabuf() ? UINT64_MAX : std::min(job->ranges[index].length, job->memory->size());
              },
          .run =
              [this, job](const SessionGuard& /*session*/, uint32_t first, uint32_t end, const absl::Status& start,
                          const std::function<void()>& then) {
                if (start.ok()) {
                  ProvisionSome(*job, first, end);
                } else {
                  job->ended = true;
                }
                then();
              },
          .done = nullptr};
}

void SessionRegions::ProvisionSome(Provisioning& job, uint32_t first, uint32_t end) {
  const MemoryLookup find_memory = [&job](MemoryObjectId /*id*/) { return job.memory; };
  uint64_t bytes = 0;
  for (uint32_t index = first; index < end; ++index) {
    absl::StatusOr<ProvisionedRegion>& outcome = job.provisioned.outcomes[index];
    outcome = ProvisionOne(job, job.ranges[index], find_memory);
    bytes += outcome.ok() ? job.ranges[index].length : 0;
  }
  lease_.CountBytes(bytes, kRegisteredBytesPerRequest);
  lease_.CountBytes(end - first, kProvisionedRegionsPerRequest);
}

absl::StatusOr<SessionRegions::RegisterJob> SessionRegions::AdmitProvision(const Provisioning& job,
                                                                           const ProvisionRange& range,
                                                                           const MemoryLookup& find_memory) {
  RegisterJob admitted;
  RNICD_ASSIGN_OR_RETURN(const AccessRights rights, AccessRightsFromMrFlags(range.flags));
  const MdlEntry entry{.byte_offset = range.byte_offset, .byte_count = range.length, .virtual_address = range.address};
  RNICD_ASSIGN_OR_RETURN(MappedRange mapped, ResolveMdlChain(std::span(&entry, 1), range.length, find_memory));
  RNICD_ASSIGN_OR_RETURN(admitted.region, NewOrdinary(job.domain));
  RNICD_ASSIGN_OR_RETURN(admitted.request, admitted.region->BeginRegister(std::move(mapped), rights, ledger_));
  return admitted;
}

// The region gets its id last, so that no request can name one that failed.
absl::StatusOr<ProvisionedRegion> SessionRegions::ProvisionOne(const Provisioning& job, const ProvisionRange& range,
                                                               const MemoryLookup& find_memory) {
  absl::StatusOr<RegisterJob> admitted = AdmitProvision(job, range, find_memory);
  if (!admitted.ok()) {
    lease_.tenant().tally()->CountRegistration(false);
    node_.observer.Report(RegistrationEnded{.status = admitted.status()});
    return InWordsOfRange(admitted.status());
  }
  const absl::StatusOr<Registration> registration =
      admitted->region->FinishRegister(admitted->request, absl::OkStatus());
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
