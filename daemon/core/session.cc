#include "daemon/core/session.h"

#include "base/status.h"
#include "daemon/core/request_cost.h"

namespace rnicd::core {
namespace {

// The tenant's session limits, with the node's where the tenant sets none.
Limits SessionLimits(const Limits& of_tenant, const Limits& of_node) {
  Limits limits = of_node;
  for (size_t index = 0; index < kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    if (of_tenant[resource] != 0) {
      limits[resource] = of_tenant[resource];
    }
  }
  return limits;
}

absl::Status RateError(const RateLimiter& rate) {
  return MakeError(ErrorInfo{
      .reason = ErrorReason::RATE_LIMITED, .limit = rate.per_second(), .used = rate.per_second(), .requested = 1});
}

// Empty for requests that cannot fail once they have begun.
std::string_view LateName(RequestKind kind) {
  switch (kind) {
    case RequestKind::kRegisterMr:
      return "late.register";
    case RequestKind::kDeregisterMr:
      return "late.deregister";
    case RequestKind::kInitializeFastRegisterMr:
      return "late.initialize";
    default:
      return "";
  }
}

// Reports a request that failed after its call returned STATUS_PENDING, where nothing else would record it.
void ReportLateFailure(Observer& observer, const Session& session, RequestKind kind, uint64_t object,
                       const absl::Status& status) {
  if (status.ok()) {
    return;
  }
  session.tenant().tally()->CountRefusal(status);
  observer.Report(Decision{.what = LateName(kind),
                           .caller = &session.owner(),
                           .tenant = session.tenant().name(),
                           .workload = session.tenant().workload(),
                           .session = session.id(),
                           .object = "mr_id=" + std::to_string(object),
                           .status = status});
}

}  // namespace

Session::Guard::~Guard() {
  if (session_ != nullptr) {
    session_->EndGuard();
  }
}

Session::Session(Node& node, SessionId id, Caller owner, std::string label, Charge charge,
                 std::shared_ptr<Tenant> tenant)
    : node_(node),
      id_(id),
      owner_(std::move(owner)),
      label_(std::move(label)),
      opened_(node.clock.Now()),
      tenant_(std::move(tenant)),
      charge_(std::move(charge)),
      ledger_(
          std::make_shared<Ledger>(SessionLimits(tenant_->limits().session, node.limits.session), tenant_->ledger())),
      pins_{.session = std::make_shared<PinnedFiles>(ledger_, false), .tenant = tenant_->pins()},
      rate_(node.clock, tenant_->limits().session_rate),
      adapters_(node.random.Next()),
      domains_(node.random.Next()),
      memories_(node.random.Next()),
      regions_(node.random.Next()),
      mappings_(node.random.Next()),
      addresses_(node.random.Next()),
      completion_queues_(node.random.Next()),
      queue_pairs_(node.random.Next()),
      windows_(node.random.Next()) {}

absl::Status Session::AdmitCall(std::chrono::nanoseconds* wait) {
  if (const auto own = rate_.Take(); own.has_value()) {
    *wait = *own;
    return RateError(rate_);
  }
  if (const auto shared = tenant_->rate().Take(); shared.has_value()) {
    rate_.Undo();
    *wait = *shared;
    return RateError(tenant_->rate());
  }
  return absl::OkStatus();
}

void Session::CountBytes(uint64_t bytes, uint64_t per_request) {
  rate_.Count(bytes / per_request);
  tenant_->rate().Count(bytes / per_request);
}

absl::Status Session::CheckNotDraining() const {
  return node_.draining.load() ? MakeError(ErrorReason::DAEMON_DRAINING) : absl::OkStatus();
}

// --- adapters ---

absl::StatusOr<AdapterId> Session::OpenAdapter(const std::string& name, NdkVersion version) {
  RNICD_RETURN_IF_ERROR(CheckNdkVersion(version));
  RNICD_ASSIGN_OR_RETURN(Charge charge, Charge::Take(ledger_, Resource::kAdapters, 1));
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<provider::DeviceAdapter> device, node_.provider.OpenAdapter(name));
  return adapters_.Insert(std::make_shared<Adapter>(name, std::move(device), std::move(charge)));
}

absl::StatusOr<NdkAdapterInfo> Session::QueryAdapterInfo(AdapterId id) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Adapter> adapter, FindIn(adapters_, id, "adapter_id"));
  RNICD_ASSIGN_OR_RETURN(const Closable::Hold hold, adapter->Acquire());
  NdkAdapterInfo info = adapter->device().info();
  info.version = kNdkVersion;
  return info;
}

// The id stays in the table until the close is complete, so that a late child gets OBJECT_CLOSING.
absl::StatusOr<Progress> Session::CloseAdapter(AdapterId id, const Done& done) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Adapter> adapter, FindIn(adapters_, id, "adapter_id"));
  const auto finish = [self = shared_from_this(), id, done] {
    self->adapters_.Remove(id);
    done(absl::OkStatus());
  };
  RNICD_ASSIGN_OR_RETURN(const Closable::CloseResult result, adapter->Close(finish));
  if (result == Closable::CloseResult::kPending) {
    return Progress::kPending;
  }
  adapters_.Remove(id);
  return Progress::kDone;
}

// --- pending requests ---

// std::function requires copyable captures.
void Session::RunOnWorker(Guard guard, Job job) {
  RunHeld(node_.workers, std::make_shared<Guard>(std::move(guard)), std::move(job));
}

void Session::RunHeld(Executor& executor, const std::shared_ptr<Guard>& held, Job job) {
  executor.Enqueue(job_owner(), [this, held, job = std::move(job)] {
    job(ending() ? MakeError(ErrorReason::SESSION_ENDING) : absl::OkStatus());
  });
  // The end may have begun meanwhile, and looked at the queue too early.
  if (ending()) {
    node_.reapers.PostFor(tenant_->number(), [this, held] { CancelQueued(); });
  }
}

absl::StatusOr<std::shared_ptr<Charge>> Session::TakeOne(Resource resource) {
  RNICD_ASSIGN_OR_RETURN(Charge charge, Charge::Take(ledger_, resource, 1));
  return std::make_shared<Charge>(std::move(charge));
}

RegisterDone Session::ReportRegister(MemoryRegionId id, PendingChoice choice, std::shared_ptr<Charge> charge,
                                     const RegisterDone& done) {
  if (!choice.to_events) {
    return [charge = std::move(charge), done](const absl::StatusOr<Registration>& outcome) {
      charge->Refund();
      done(outcome);
    };
  }
  return
      [self = shared_from_this(), charge = std::move(charge), id, choice](const absl::StatusOr<Registration>& outcome) {
        ReportLateFailure(self->node_.observer, *self, RequestKind::kRegisterMr, id.value, outcome.status());
        self->events_.Push(RequestCompleted{.kind = RequestKind::kRegisterMr,
                                            .request_context = choice.request_context,
                                            .object_id = id.value,
                                            .status = outcome.status(),
                                            .registration = outcome.ok() ? std::optional(*outcome) : std::nullopt,
                                            .charge = charge});
      };
}

Done Session::Report(RequestKind kind, uint64_t object_id, PendingChoice choice, std::shared_ptr<Charge> charge,
                     const Done& done) {
  if (!choice.to_events) {
    return [charge = std::move(charge), done](const absl::Status& status) {
      charge->Refund();
      done(status);
    };
  }
  return [self = shared_from_this(), charge = std::move(charge), kind, object_id, choice](const absl::Status& status) {
    ReportLateFailure(self->node_.observer, *self, kind, object_id, status);
    self->events_.Push(RequestCompleted{.kind = kind,
                                        .request_context = choice.request_context,
                                        .object_id = object_id,
                                        .status = status,
                                        .charge = charge});
  };
}

// --- protection domains and regions ---

absl::StatusOr<ProtectionDomainId> Session::CreatePd(AdapterId id) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Adapter> adapter, FindIn(adapters_, id, "adapter_id"));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, TakeOne(Resource::kProtectionDomains));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<ProtectionDomain> domain,
                         ProtectionDomain::Create(std::move(adapter), std::move(charge)));
  return domains_.Insert(std::move(domain));
}

// Closing can never fail, so it takes no charge of its own: the object's slot stays charged until the completion is
// fetched.
absl::StatusOr<Progress> Session::ClosePd(ProtectionDomainId id, PendingChoice choice, const Done& done) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<ProtectionDomain> domain, FindIn(domains_, id, "pd_id"));
  const auto finish = [self = shared_from_this(), id,
                       report = Report(RequestKind::kClosePd, id.value, choice, domain->charge(), done)] {
    self->domains_.Remove(id);
    report(absl::OkStatus());
  };
  RNICD_ASSIGN_OR_RETURN(const Closable::CloseResult result, domain->Close(finish));
  if (result == Closable::CloseResult::kPending) {
    return Progress::kPending;
  }
  domains_.Remove(id);
  return Progress::kDone;
}

absl::StatusOr<MemoryRegionId> Session::CreateMr(ProtectionDomainId id, bool fast_register) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<ProtectionDomain> domain, FindIn(domains_, id, "pd_id"));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, TakeOne(Resource::kRegions));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<MemoryRegion> region,
                         MemoryRegion::Create(std::move(domain), fast_register, std::move(charge), tenant_->tally(),
                                              node_.observer, node_.clock));
  return regions_.Insert(std::move(region));
}

absl::StatusOr<Session::RegisterJob> Session::AdmitRegister(const RegisterArguments& arguments, PendingChoice choice,
                                                            const RegisterDone& done) {
  RNICD_RETURN_IF_ERROR(CheckNotDraining());
  RegisterJob job;
  RNICD_ASSIGN_OR_RETURN(job.region, FindIn(regions_, arguments.region, "mr_id"));
  RNICD_ASSIGN_OR_RETURN(const AccessRights rights, AccessRightsFromMrFlags(arguments.flags));
  const MemoryLookup find_memory = [this](MemoryObjectId id) { return memories_.Find(id); };
  RNICD_ASSIGN_OR_RETURN(MappedRange range, ResolveMdlChain(arguments.chain, arguments.length, find_memory));
  if (IsSlow(arguments.length)) {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, TakeOne(Resource::kPendingRequests));
    job.report = ReportRegister(arguments.region, choice, std::move(charge), done);
  }
  RNICD_ASSIGN_OR_RETURN(job.request, job.region->BeginRegister(std::move(range), rights, ledger_));
  return job;
}

absl::StatusOr<std::optional<Registration>> Session::RegisterMr(const RegisterArguments& arguments,
                                                                PendingChoice choice, const RegisterDone& done) {
  RNICD_ASSIGN_OR_RETURN(Guard guard, Begin());
  absl::StatusOr<RegisterJob> admitted = AdmitRegister(arguments, choice, done);
  if (!admitted.ok()) {
    tenant_->tally()->CountRegistration(false);
    node_.observer.Report(RegistrationEnded{.status = admitted.status()});
    return admitted.status();
  }
  CountBytes(arguments.length, kRegisteredBytesPerRequest);
  if (admitted->report == nullptr) {
    RNICD_ASSIGN_OR_RETURN(Registration registration, admitted->region->FinishRegister(std::move(admitted->request)));
    return std::optional(registration);
  }
  auto job = std::make_shared<RegisterJob>(*std::move(admitted));
  RunOnWorker(std::move(guard), [job](const absl::Status& start) {
    job->report(start.ok() ? job->region->FinishRegister(std::move(job->request))
                           : job->region->CancelRegister(std::move(job->request), start));
  });
  return std::nullopt;
}

absl::StatusOr<Progress> Session::DeregisterMr(MemoryRegionId id, PendingChoice choice, const Done& done) {
  RNICD_ASSIGN_OR_RETURN(Guard guard, Begin());
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<MemoryRegion> region, FindIn(regions_, id, "mr_id"));
  if (!IsSlow(region->registered_length())) {
    RNICD_ASSIGN_OR_RETURN(MemoryRegion::DeregisterRequest request, region->BeginDeregister());
    RNICD_RETURN_IF_ERROR(region->FinishDeregister(std::move(request)));
    return Progress::kDone;
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, TakeOne(Resource::kPendingRequests));
  RNICD_ASSIGN_OR_RETURN(MemoryRegion::DeregisterRequest begun, region->BeginDeregister());
  auto request = std::make_shared<MemoryRegion::DeregisterRequest>(std::move(begun));
  const Done report = Report(RequestKind::kDeregisterMr, id.value, choice, std::move(charge), done);
  RunOnWorker(std::move(guard), [region, request, report](const absl::Status& start) {
    report(start.ok() ? region->FinishDeregister(std::move(*request))
                      : region->CancelDeregister(std::move(*request), start));
  });
  return Progress::kPending;
}

// The id is dead at once; the region is closed when its last request is complete.
absl::StatusOr<Progress> Session::CloseMr(MemoryRegionId id, PendingChoice choice, const Done& done) {
  RNICD_ASSIGN_OR_RETURN(Guard guard, Begin());
  const std::shared_ptr<MemoryRegion> region = regions_.Remove(id);
  if (region == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  }
  const auto finish = [report = Report(RequestKind::kCloseMr, id.value, choice, region->charge(), done)] {
    report(absl::OkStatus());
  };
  // The close of a large region is left to a worker: the thread that releases the last hold does the work.
  std::shared_ptr<Closable::Hold> last_hold;
  if (IsSlow(region->registered_length())) {
    RNICD_ASSIGN_OR_RETURN(Closable::Hold hold, region->Acquire());
    last_hold = std::make_shared<Closable::Hold>(std::move(hold));
  }
  RNICD_ASSIGN_OR_RETURN(const Closable::CloseResult result, region->Close(finish));
  if (last_hold != nullptr) {
    RunOnWorker(std::move(guard), [last_hold](const absl::Status& /*start*/) { last_hold->Release(); });
  }
  return result == Closable::CloseResult::kPending ? Progress::kPending : Progress::kDone;
}

absl::StatusOr<LocalToken> Session::GetLocalToken(MemoryRegionId id) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryRegion> region, FindIn(regions_, id, "mr_id"));
  absl::StatusOr<LocalToken> token = region->GetLocalToken();
  node_.observer.Report(TokensIssued{.local = token.ok() ? 1U : 0U});
  return token;
}

absl::StatusOr<RemoteToken> Session::GetRemoteToken(MemoryRegionId id) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryRegion> region, FindIn(regions_, id, "mr_id"));
  absl::StatusOr<RemoteToken> token = region->GetRemoteToken();
  node_.observer.Report(TokensIssued{.remote = token.ok() ? 1U : 0U});
  return token;
}

std::vector<std::pair<MemoryRegionId, RegionView>> Session::ViewRegions() const {
  std::vector<std::pair<MemoryRegionId, RegionView>> views;
  for (const auto& [id, region] : regions_.All()) {
    views.emplace_back(id, region->View());
  }
  return views;
}

void Session::AddTo(Holdings& holdings) const {
  regions_.ForEach([&](const MemoryRegion& region) { region.AddTo(holdings); });
  mappings_.ForEach([&](const LogicalMapping& mapping) {
    const MappedPages& mapped = *mapping.pages();
    holdings.AddPages(mapping.adapter().name(), PageUse::kMapping, mapped.page_bytes, mapped.pages.size());
  });
  // Not under the table's lock: reading the state may query the card.
  for (const auto& [id, pair] : queue_pairs_.All()) {
    if (const absl::StatusOr<Closable::Hold> hold = pair->Acquire(); hold.ok()) {
      holdings.AddQueuePair(pair->domain()->adapter().name(), pair->state());
    }
  }
}

}  // namespace rnicd::core
