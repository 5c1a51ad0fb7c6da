// The part of Session that serves work requests: fast registration, mappings, queues and windows.

#include "base/status.h"
#include "daemon/core/session.h"
#include "daemon/core/work_request_resolver.h"

namespace rnicd::core {
namespace {

// NDK_LOGICAL_ADDRESS_MAPPING: a pointer, a count, padding, then the array.
constexpr uint64_t kLamHeaderBytes = 16;
constexpr uint64_t kLamEntryBytes = 8;

absl::Status CheckDepth(uint32_t depth, const Adapter& adapter) {
  if (depth == 0) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "cq_depth");
  }
  return depth > adapter.info().max_cq_depth ? MakeError(ErrorReason::ABOVE_ADAPTER_LIMIT, "cq_depth")
                                             : absl::OkStatus();
}

// "requests[3].read.sges", or "requests[3]" when no single field is at fault.
absl::Status OfRequest(const absl::Status& status, size_t index) {
  const std::string prefix = "requests[" + std::to_string(index) + "]";
  return WithFieldPrefix(status, ErrorInfoOf(status).field.empty() ? prefix : prefix + ".");
}

Progress ProgressOf(Closable::CloseResult result) {
  return result == Closable::CloseResult::kPending ? Progress::kPending : Progress::kDone;
}

}  // namespace

// --- fast registration and mappings ---

absl::StatusOr<Progress> Session::InitializeFastRegisterMr(const InitializeArguments& arguments, PendingChoice choice,
                                                           const Done& done) {
  RNICD_ASSIGN_OR_RETURN(Guard guard, Begin());
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<MemoryRegion> region, FindIn(regions_, arguments.region, "mr_id"));
  std::shared_ptr<Charge> pending;
  if (IsSlow(arguments.max_pages * kNdkPageBytes)) {
    RNICD_ASSIGN_OR_RETURN(pending, TakeOne(Resource::kPendingRequests));
  }
  RNICD_ASSIGN_OR_RETURN(MemoryRegion::InitializeRequest begun,
                         region->BeginInitialize(arguments.max_pages, arguments.remote_access, ledger_));
  if (pending == nullptr) {
    RNICD_RETURN_IF_ERROR(region->FinishInitialize(std::move(begun)));
    return Progress::kDone;
  }
  auto request = std::make_shared<MemoryRegion::InitializeRequest>(std::move(begun));
  const Done report =
      Report(RequestKind::kInitializeFastRegisterMr, arguments.region.value, choice, std::move(pending), done);
  RunOnWorker(std::move(guard), [region, request, report](const absl::Status& start) {
    report(start.ok() ? region->FinishInitialize(std::move(*request))
                      : region->CancelInitialize(std::move(*request), start));
  });
  return Progress::kPending;
}

absl::StatusOr<BuiltLam> Session::BuildLam(const BuildLamArguments& arguments) {
  RNICD_RETURN_IF_ERROR(CheckNotDraining());
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Adapter> adapter, FindIn(adapters_, arguments.adapter, "adapter_id"));
  const MemoryLookup find_memory = [this](MemoryObjectId id) { return memories_.Find(id); };
  RNICD_ASSIGN_OR_RETURN(MappedRange range, ResolveMdlChain(arguments.chain, arguments.length, find_memory));
  const uint64_t needed = kLamHeaderBytes + kLamEntryBytes * range.pages;
  if (arguments.lam_size.has_value() && *arguments.lam_size < needed) {
    return MakeError(ErrorInfo{.reason = ErrorReason::BUFFER_TOO_SMALL,
                               .field = "lam_size",
                               .limit = *arguments.lam_size,
                               .requested = needed});
  }
  BuiltLam built{.pages = range.pages, .fbo = static_cast<uint32_t>(range.base.value % kNdkPageBytes)};
  RNICD_ASSIGN_OR_RETURN(Charge charge, Charge::Take(ledger_, Resource::kLogicalMappings, 1));
  RNICD_ASSIGN_OR_RETURN(Closable::Hold hold, adapter->Acquire());
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<const MappedPages> pages, TakePages(std::move(range), ledger_));
  const auto mapping = std::make_shared<LogicalMapping>(std::move(adapter), std::move(hold), std::move(charge),
                                                        std::move(pages), built.fbo);
  addresses_.Insert(mapping);
  built.first = mapping->base();
  built.id = mappings_.Insert(mapping);
  return built;
}

absl::Status Session::ReleaseLam(LogicalMappingId id) {
  const std::shared_ptr<LogicalMapping> mapping = mappings_.Remove(id);
  if (mapping == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "lam_id");
  }
  addresses_.Remove(*mapping);
  return absl::OkStatus();
}

// --- completion queues ---

absl::StatusOr<CompletionQueueId> Session::CreateCq(AdapterId id, uint32_t depth, uint64_t context) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Adapter> adapter, FindIn(adapters_, id, "adapter_id"));
  RNICD_RETURN_IF_ERROR(CheckDepth(depth, *adapter));
  CompletionQueue::Options options{.depth = depth, .context = context};
  RNICD_ASSIGN_OR_RETURN(options.charge, TakeOne(Resource::kCompletionQueues));
  RNICD_ASSIGN_OR_RETURN(options.entries, Charge::Take(ledger_, Resource::kCqEntries, depth));
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue,
                         CompletionQueue::Create(std::move(adapter), std::move(options), events_));
  const CompletionQueueId queue_id = completion_queues_.Insert(queue);
  const std::weak_ptr<CompletionQueue> weak_queue = queue;
  queue->Publish(queue_id, [weak = weak_from_this(), weak_queue] {
    const std::shared_ptr<Session> self = weak.lock();
    const std::shared_ptr<CompletionQueue> dead = weak_queue.lock();
    if (self != nullptr && dead != nullptr) {
      self->EndQueuePairsOf(dead);
    }
  });
  return queue_id;
}

// On a worker, because a queue pair is the caller: it pushed the completion that did not fit. A session that is ending
// ends them anyway.
void Session::EndQueuePairsOf(const std::shared_ptr<CompletionQueue>& queue) {
  absl::StatusOr<Guard> guard = Begin();
  if (!guard.ok()) {
    return;
  }
  // A weak reference: a queue closed meanwhile has no queue pairs, and must not stay open until the job has run.
  RunOnWorker(*std::move(guard), [this, weak_queue = std::weak_ptr<CompletionQueue>(queue)](const absl::Status& start) {
    const std::shared_ptr<CompletionQueue> dead = start.ok() ? weak_queue.lock() : nullptr;
    for (const auto& [id, pair] : queue_pairs_.All()) {
      const absl::StatusOr<Closable::Hold> hold = pair->Acquire();
      if (dead != nullptr && hold.ok() && pair->Uses(*dead)) {
        pair->device().Flush();
      }
    }
  });
}

absl::Status Session::ResizeCq(CompletionQueueId id, uint32_t depth) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(completion_queues_, id, "cq_id"));
  RNICD_ASSIGN_OR_RETURN(const Closable::Hold hold, queue->Acquire());
  if ((queue->adapter().info().adapter_flags & kAdapterFlagCqResize) == 0) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  RNICD_RETURN_IF_ERROR(CheckDepth(depth, queue->adapter()));
  return queue->Resize(depth);
}

absl::Status Session::ArmCq(CompletionQueueId id, CqNotifyType type) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(completion_queues_, id, "cq_id"));
  queue->Arm(type);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Completion>> Session::GetCqResults(CompletionQueueId id, uint32_t max) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(completion_queues_, id, "cq_id"));
  return queue->Take(max);
}

absl::StatusOr<PolledCq> Session::PollCq(CompletionQueueId id, uint32_t max, std::chrono::milliseconds wait_max,
                                         CqWait::Done done) {
  if (wait_max > kCqWaitMax) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "wait_ms");
  }
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(completion_queues_, id, "cq_id"));
  RNICD_ASSIGN_OR_RETURN(std::vector<Completion> queued, queue->Take(max));
  if (!queued.empty() || max == 0 || wait_max.count() == 0) {
    return PolledCq{.results = std::move(queued)};
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, TakeOne(Resource::kPendingRequests));
  const auto wait = std::make_shared<CqWait>();
  const std::function<void()> end = [weak_queue = std::weak_ptr<CompletionQueue>(queue), wait] {
    if (const std::shared_ptr<CompletionQueue> open = weak_queue.lock(); open != nullptr) {
      open->EndWait(wait);
    }
  };
  // Set before the queue has the wait, so that `done` finds it. If it rings before, TakeOrWait returns at once.
  Alarms& alarms = node_.alarms;
  const Alarms::Key alarm = alarms.Set(wait_max, end);
  wait->max = max;
  wait->done = [&alarms, alarm, charge = std::move(charge), done = std::move(done)](const auto& outcome) {
    alarms.Cancel(alarm);
    charge->Refund();
    return done(outcome);
  };
  auto taken = queue->TakeOrWait(wait);
  if (taken.ok() && !taken->has_value()) {
    return PolledCq{.end = end};
  }
  alarms.Cancel(alarm);
  RNICD_RETURN_IF_ERROR(taken.status());
  return PolledCq{.results = *std::move(taken)};
}

// The id stays in the table until the close is complete, so that a late queue pair gets OBJECT_CLOSING.
absl::StatusOr<Progress> Session::CloseCq(CompletionQueueId id, PendingChoice choice, const Done& done) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<CompletionQueue> queue, FindIn(completion_queues_, id, "cq_id"));
  const auto finish = [self = shared_from_this(), id,
                       report = Report(RequestKind::kCloseCq, id.value, choice, queue->charge(), done)] {
    self->completion_queues_.Remove(id);
    report(absl::OkStatus());
  };
  RNICD_ASSIGN_OR_RETURN(const Closable::CloseResult result, queue->Close(finish));
  if (result == Closable::CloseResult::kClosed) {
    completion_queues_.Remove(id);
  }
  return ProgressOf(result);
}

// --- queue pairs ---

absl::StatusOr<QueuePairId> Session::CreateQp(const CreateQpArguments& arguments) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<ProtectionDomain> domain, FindIn(domains_, arguments.domain, "pd_id"));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<CompletionQueue> receive_queue,
                         FindIn(completion_queues_, arguments.receive_queue, "receive_cq_id"));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<CompletionQueue> initiator_queue,
                         FindIn(completion_queues_, arguments.initiator_queue, "initiator_cq_id"));
  RNICD_RETURN_IF_ERROR(QueuePair::Check(*domain, *receive_queue, *initiator_queue, arguments.limits));
  QueuePair::Options options{.limits = arguments.limits, .context = arguments.context};
  RNICD_ASSIGN_OR_RETURN(options.charge, TakeOne(Resource::kQueuePairs));
  RNICD_ASSIGN_OR_RETURN(options.entries,
                         Charge::Take(ledger_, Resource::kQueueEntries,
                                      uint64_t{arguments.limits.receive_depth} + arguments.limits.initiator_depth));
  RNICD_ASSIGN_OR_RETURN(options.lists,
                         Charge::Take(ledger_, Resource::kHeapBytes, QueuePair::HeapOfLists(arguments.limits)));
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<QueuePair> pair,
                         QueuePair::Create(std::move(domain), std::move(receive_queue), std::move(initiator_queue),
                                           std::move(options), events_, node_.observer));
  const QueuePairId id = queue_pairs_.Insert(pair);
  pair->Publish(id);
  return id;
}

absl::StatusOr<Session::HeldQueuePair> Session::HoldQueuePair(QueuePairId id) {
  HeldQueuePair held;
  RNICD_ASSIGN_OR_RETURN(held.pair, FindIn(queue_pairs_, id, "qp_id"));
  RNICD_ASSIGN_OR_RETURN(held.hold, held.pair->Acquire());
  return held;
}

absl::StatusOr<Session::QueuePairView> Session::QueryQp(QueuePairId id) {
  RNICD_ASSIGN_OR_RETURN(const HeldQueuePair held, HoldQueuePair(id));
  return QueuePairView{.state = held.pair->state(), .address = held.pair->device().address()};
}

absl::Status Session::ConnectQp(QueuePairId id, std::string_view peer_address) {
  RNICD_ASSIGN_OR_RETURN(const HeldQueuePair held, HoldQueuePair(id));
  return held.pair->device().Connect(peer_address);
}

absl::Status Session::DisconnectQp(QueuePairId id) {
  RNICD_ASSIGN_OR_RETURN(const HeldQueuePair held, HoldQueuePair(id));
  if (held.pair->state() != provider::QueuePairState::kReadyToSend) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED, "qp_id");
  }
  held.pair->device().Disconnect();
  return absl::OkStatus();
}

absl::Status Session::Flush(QueuePairId id) {
  RNICD_ASSIGN_OR_RETURN(const HeldQueuePair held, HoldQueuePair(id));
  held.pair->device().Flush();
  return absl::OkStatus();
}

// The id is dead at once; the queue pair is closed when the running posts have returned.
absl::StatusOr<Progress> Session::CloseQp(QueuePairId id, PendingChoice choice, const Done& done) {
  RNICD_ASSIGN_OR_RETURN(const Guard guard, Begin());
  const std::shared_ptr<QueuePair> pair = queue_pairs_.Remove(id);
  if (pair == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "qp_id");
  }
  const auto finish = [report = Report(RequestKind::kCloseQp, id.value, choice, pair->charge(), done)] {
    report(absl::OkStatus());
  };
  RNICD_ASSIGN_OR_RETURN(const Closable::CloseResult result, pair->Close(finish));
  return ProgressOf(result);
}

absl::StatusOr<RemoteToken> Session::PostOne(QueuePair& pair, const WorkRequestResolver& resolver,
                                             const WorkRequest& request) {
  RNICD_ASSIGN_OR_RETURN(ResolvedRequest resolved, resolver.Resolve(request));
  RNICD_ASSIGN_OR_RETURN(const RemoteToken token, pair.Enqueue(std::move(resolved.request)));
  if (resolved.window != nullptr) {
    resolved.window->RecordBind();
  }
  if (resolved.fast_region != nullptr) {
    resolved.fast_region->RecordFastRegistration(resolved.fast_registration);
  }
  return token;
}

absl::StatusOr<PostOutcome> Session::Post(QueuePairId id, std::span<const WorkRequest> requests) {
  RNICD_ASSIGN_OR_RETURN(const HeldQueuePair held, HoldQueuePair(id));
  const WorkRequestResolver resolver(*held.pair, regions_, windows_, addresses_, ledger_);
  PostOutcome outcome;
  for (const WorkRequest& request : requests) {
    const absl::StatusOr<RemoteToken> token = PostOne(*held.pair, resolver, request);
    if (!token.ok()) {
      outcome.failure = OfRequest(token.status(), outcome.posted);
      if (std::holds_alternative<WorkRequest::FastRegister>(request.operation)) {
        node_.observer.Report(FastRegisterRefused{});
      }
      break;
    }
    if (token->value != 0) {
      outcome.issued_tokens.push_back({.request_index = outcome.posted, .remote_token = *token});
    }
    ++outcome.posted;
  }
  // Also after a refusal: requests accepted before it must be executed, deferred or not.
  held.pair->device().Ring();
  if (!outcome.issued_tokens.empty()) {
    node_.observer.Report(TokensIssued{.remote = outcome.issued_tokens.size()});
  }
  return outcome;
}

// --- memory windows ---

absl::StatusOr<MemoryWindowId> Session::CreateMw(ProtectionDomainId id) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<ProtectionDomain> domain, FindIn(domains_, id, "pd_id"));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, TakeOne(Resource::kWindows));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<MemoryWindow> window,
                         MemoryWindow::Create(std::move(domain), std::move(charge)));
  return windows_.Insert(std::move(window));
}

absl::StatusOr<RemoteToken> Session::GetRemoteTokenFromMw(MemoryWindowId id) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryWindow> window, FindIn(windows_, id, "mw_id"));
  return window->GetRemoteToken();
}

absl::StatusOr<Progress> Session::CloseMw(MemoryWindowId id, PendingChoice choice, const Done& done) {
  RNICD_ASSIGN_OR_RETURN(const Guard guard, Begin());
  const std::shared_ptr<MemoryWindow> window = windows_.Remove(id);
  if (window == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "mw_id");
  }
  const auto finish = [report = Report(RequestKind::kCloseMw, id.value, choice, window->charge(), done)] {
    report(absl::OkStatus());
  };
  RNICD_ASSIGN_OR_RETURN(const Closable::CloseResult result, window->Close(finish));
  return ProgressOf(result);
}

absl::StatusOr<LocalToken> Session::GetPrivilegedMemoryRegionToken(ProtectionDomainId id) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<ProtectionDomain> domain, FindIn(domains_, id, "pd_id"));
  return domain->privileged_token();
}

}  // namespace rnicd::core
