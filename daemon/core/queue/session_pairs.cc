#include "daemon/core/queue/session_pairs.h"

#include <utility>
#include <variant>

#include "base/status.h"
#include "daemon/core/queue/work_request_resolver.h"

namespace rnicd::core {
namespace {

// "requests[3].read.sges", or "requests[3]" when no single field is at fault.
absl::Status OfRequest(const absl::Status& status, size_t index) {
  const std::string prefix = "requests[" + std::to_string(index) + "]";
  return WithFieldPrefix(status, ErrorInfoOf(status).field.empty() ? prefix : prefix + ".");
}

}  // namespace

absl::StatusOr<QueuePairId> SessionPairs::Create(const CreateQpArguments& arguments) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<ProtectionDomain> domain, FindIn(named_.domains, arguments.domain, "pd_id"));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<CompletionQueue> receive_queue,
                         FindIn(named_.queues, arguments.receive_queue, "receive_cq_id"));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<CompletionQueue> initiator_queue,
                         FindIn(named_.queues, arguments.initiator_queue, "initiator_cq_id"));
  RNICD_RETURN_IF_ERROR(QueuePair::Check(*domain, *receive_queue, *initiator_queue, arguments.limits));
  QueuePair::Options options{.limits = arguments.limits, .context = arguments.context};
  const uint64_t entries = uint64_t{arguments.limits.receive_depth} + arguments.limits.initiator_depth;
  RNICD_ASSIGN_OR_RETURN(auto charges,
                         Charge::TakeAll(ledger_, {{Resource::kQueuePairs, 1},
                                                   {Resource::kQueueEntries, entries},
                                                   {Resource::kHeapBytes, QueuePair::HeapOfLists(arguments.limits)}}));
  options.charge = std::make_shared<Charge>(std::move(charges[0]));
  options.entries = std::move(charges[1]);
  options.lists = std::move(charges[2]);
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<QueuePair> pair,
                         QueuePair::Create(std::move(domain), std::move(receive_queue), std::move(initiator_queue),
                                           std::move(options), lease_.events(), node_.observer));
  const QueuePairId id = table_.Insert(pair);
  pair->KeepUntilClosed(node_.addresses.AddQueuePair(pair->device().address(), lease_.tenant().number()));
  pair->Publish(id, arguments.flush_with_peer ? [this, id] { FlushLater(id); } : std::function<void()>());
  return id;
}

absl::StatusOr<SessionPairs::HeldQueuePair> SessionPairs::HoldQueuePair(QueuePairId id) {
  HeldQueuePair held;
  RNICD_ASSIGN_OR_RETURN(held.pair, FindIn(table_, id, "qp_id"));
  RNICD_ASSIGN_OR_RETURN(held.hold, held.pair->Acquire());
  return held;
}

absl::StatusOr<QueuePairView> SessionPairs::Query(QueuePairId id) {
  RNICD_ASSIGN_OR_RETURN(const HeldQueuePair held, HoldQueuePair(id));
  return QueuePairView{.state = held.pair->state(), .address = held.pair->device().address()};
}

absl::Status SessionPairs::Connect(QueuePairId id, std::string_view peer_address) {
  RNICD_ASSIGN_OR_RETURN(const HeldQueuePair held, HoldQueuePair(id));
  RNICD_RETURN_IF_ERROR(held.pair->CheckUntied());
  RNICD_RETURN_IF_ERROR(CheckMayReach(held.pair->domain()->adapter(), peer_address));
  return held.pair->device().Connect(peer_address);
}

// Queue pairs of the same tenant on this node need no permission.
absl::Status SessionPairs::CheckMayReach(Adapter& adapter, std::string_view peer_address) const {
  const std::optional<uint64_t> tenant = node_.addresses.TenantOfQueuePair(peer_address);
  if (tenant == lease_.tenant().number()) {
    return absl::OkStatus();
  }
  RNICD_ASSIGN_OR_RETURN(const IpAddress peer, adapter.device().LocateQueuePair(peer_address));
  const bool permitted = lease_.tenant().connections()->MayReach(peer);
  const absl::Status decision =
      permitted ? absl::OkStatus() : MakeError(ErrorReason::ADDRESS_NOT_PERMITTED, "peer_address");
  lease_.ReportDetail("connection.pair", "peer=" + peer.ToText(), decision);
  return decision;
}

absl::Status SessionPairs::Disconnect(QueuePairId id) {
  RNICD_ASSIGN_OR_RETURN(const HeldQueuePair held, HoldQueuePair(id));
  if (held.pair->state() != QueuePairState::kReadyToSend) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED, "qp_id");
  }
  held.pair->device().Disconnect();
  return absl::OkStatus();
}

absl::Status SessionPairs::Flush(QueuePairId id) {
  RNICD_ASSIGN_OR_RETURN(const HeldQueuePair held, HoldQueuePair(id));
  held.pair->device().Flush();
  return absl::OkStatus();
}

// The id is dead at once; the queue pair is closed when the running posts have returned.
MaybePending<> SessionPairs::Close(QueuePairId id, PendingChoice choice, const Done<>& done) {
  const std::shared_ptr<QueuePair> pair = table_.Remove(id);
  if (pair == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "qp_id");
  }
  return CloseRemoved(*pair, ReportClose(RequestKind::kCloseQp, id, choice, *pair, done));
}

absl::StatusOr<RemoteToken> SessionPairs::PostOne(QueuePair& pair, const WorkRequestResolver& resolver,
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

void SessionPairs::ReportRefusal(const WorkRequest& request, const absl::Status& refusal, PostOutcome* outcome) {
  if (outcome->failure.ok()) {
    outcome->failure = OfRequest(refusal, outcome->posted);
  }
  if (std::holds_alternative<WorkRequest::FastRegister>(request.operation)) {
    node_.observer.Report(FastRegisterRefused{});
  }
}

absl::StatusOr<PostOutcome> SessionPairs::Post(QueuePairId id, std::span<const WorkRequest> requests,
                                               Refusals refusals) {
  RNICD_ASSIGN_OR_RETURN(const HeldQueuePair held, HoldQueuePair(id));
  const WorkRequestResolver resolver(*held.pair, named_.regions, named_.windows, named_.addresses, ledger_);
  PostOutcome outcome;
  bool receive_refused = false;
  for (const WorkRequest& request : requests) {
    // Cancelled behind the one that was refused, so not worth a check, nor a second error. But a receive may be filled
    // before the turn of an initiator request.
    const bool is_receive = std::holds_alternative<WorkRequest::Receive>(request.operation);
    if (!outcome.failure.ok() && (receive_refused || !is_receive)) {
      held.pair->EnqueueRefused(request, outcome.failure);
      ++outcome.posted;
      continue;
    }
    const absl::StatusOr<RemoteToken> token = PostOne(*held.pair, resolver, request);
    if (!token.ok()) {
      ReportRefusal(request, token.status(), &outcome);
      if (refusals == Refusals::kInOutcome) {
        break;
      }
      // What was posted before may begin, as this may fail the queue pair at once.
      held.pair->device().Kick();
      held.pair->EnqueueRefused(request, token.status());
      receive_refused = is_receive;
    } else if (token->value != 0) {
      // Most chains issue a token for each request, or none.
      outcome.issued_tokens.reserve(requests.size());
      outcome.issued_tokens.push_back({.request_index = outcome.posted, .remote_token = *token});
    }
    ++outcome.posted;
  }
  // Also after a refusal: requests accepted before it must be executed, deferred or not.
  held.pair->device().Kick();
  if (!outcome.issued_tokens.empty()) {
    node_.observer.Report(TokensIssued{.remote = outcome.issued_tokens.size()});
  }
  return outcome;
}

// A session that is ending ends them anyway.
void SessionPairs::FlushLater(QueuePairId id) {
  if (const absl::StatusOr<SessionGuard> guard = lease_.Begin(); guard.ok()) {
    requests_.RunOnWorker([this, id](const absl::Status& start) {
      if (start.ok()) {
        (void)Flush(id);  // Closed meanwhile.
      }
    });
  }
}

// On a worker, because a queue pair is the caller: it pushed the completion that did not fit. A session that is ending
// ends them anyway.
void SessionPairs::EndQueuePairsOf(const std::shared_ptr<CompletionQueue>& queue) {
  const absl::StatusOr<SessionGuard> guard = lease_.Begin();
  if (!guard.ok()) {
    return;
  }
  // A weak reference: a queue closed meanwhile has no queue pairs, and must not stay open until the job has run.
  requests_.RunOnWorker([this, weak_queue = std::weak_ptr<CompletionQueue>(queue)](const absl::Status& start) {
    const std::shared_ptr<CompletionQueue> dead = start.ok() ? weak_queue.lock() : nullptr;
    for (const auto& [id, pair] : table_.All()) {
      const absl::StatusOr<Closable::Hold> hold = pair->Acquire();
      if (dead != nullptr && hold.ok() && pair->Uses(*dead)) {
        pair->device().Flush();
      }
    }
  });
}

}  // namespace rnicd::core
