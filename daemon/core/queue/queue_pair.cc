#include "daemon/core/queue/queue_pair.h"

#include <utility>

#include "base/ndk/completion_reason.h"
#include "base/ndk/operation_type_of.h"
#include "base/status.h"
#include "daemon/core/tenant/heap_cost.h"

namespace rnicd::core {
namespace {

absl::Status CheckLimits(const QueuePairLimits& limits, const NdkAdapterInfo& info) {
  const struct {
    uint32_t wanted;
    uint32_t most;
    std::string_view field;
  } rows[] = {
      {limits.receive_depth, info.max_receive_queue_depth, "receive_queue_depth"},
      {limits.initiator_depth, info.max_initiator_queue_depth, "initiator_queue_depth"},
      {limits.receive_entries, info.max_receive_request_sge, "max_receive_request_sge"},
      {limits.initiator_entries, info.max_initiator_request_sge, "max_initiator_request_sge"},
      {limits.inline_bytes, info.max_inline_data_size, "inline_data_size"},
  };
  for (const auto& row : rows) {
    if (row.wanted > row.most) {
      return MakeError(ErrorReason::ABOVE_ADAPTER_LIMIT, row.field);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckQueue(const CompletionQueue& queue, const Adapter& adapter, std::string_view field) {
  if (&queue.adapter() != &adapter) {
    return MakeError(ErrorReason::ADAPTER_MISMATCH, field);
  }
  return queue.overrun() ? MakeError(ErrorReason::CQ_OVERRUN, field) : absl::OkStatus();
}

// The queue's own error does not name which of its two roles failed, so use `field`.
absl::StatusOr<Kept<CompletionQueue>> KeepQueue(std::shared_ptr<CompletionQueue> queue, std::string_view field) {
  absl::StatusOr<Kept<CompletionQueue>> kept = Kept<CompletionQueue>::Of(std::move(queue));
  if (!kept.ok()) {
    return MakeError(ErrorInfoOf(kept.status()).reason, field);
  }
  return kept;
}

// The reason of a request that was refused, unless another failure came first.
ErrorReason ReasonOf(const provider::Completion& completion) {
  return completion.refusal != ErrorReason::UNSPECIFIED && completion.status == RowOf(completion.refusal).ntstatus
             ? completion.refusal
             : CompletionReason(completion.type, completion.status, completion.at_peer);
}

Completion AsOwnerSees(const provider::Completion& completion, uint64_t qp_context, QueuePairId id) {
  return {.status = completion.status,
          .reason = ReasonOf(completion),
          .type = completion.type,
          .bytes = completion.bytes,
          .qp_context = qp_context,
          .request_context = completion.request_context,
          .invalidated_token = completion.invalidated,
          .queue_pair = id,
          .request_number = completion.number};
}

}  // namespace

absl::Status QueuePair::Check(const ProtectionDomain& domain, const CompletionQueue& receive_queue,
                              const CompletionQueue& initiator_queue, const QueuePairLimits& limits) {
  RNICD_RETURN_IF_ERROR(CheckQueue(receive_queue, domain.adapter(), "receive_cq_id"));
  RNICD_RETURN_IF_ERROR(CheckQueue(initiator_queue, domain.adapter(), "initiator_cq_id"));
  return CheckLimits(limits, domain.adapter().info());
}

uint64_t QueuePair::HeapOfLists(const QueuePairLimits& limits) {
  const uint64_t receive = limits.receive_entries * kHeapOfListEntry;
  const uint64_t initiator = limits.initiator_entries * kHeapOfListEntry + limits.inline_bytes;
  return limits.receive_depth * receive + limits.initiator_depth * initiator;
}

absl::StatusOr<std::shared_ptr<QueuePair>> QueuePair::Create(std::shared_ptr<ProtectionDomain> domain,
                                                             std::shared_ptr<CompletionQueue> receive_queue,
                                                             std::shared_ptr<CompletionQueue> initiator_queue,
                                                             Options options, EventQueue& events, Observer& observer) {
  RNICD_ASSIGN_OR_RETURN(Kept<ProtectionDomain> kept_domain, Kept<ProtectionDomain>::Of(std::move(domain)));
  RNICD_ASSIGN_OR_RETURN(Kept<CompletionQueue> receive, KeepQueue(std::move(receive_queue), "receive_cq_id"));
  RNICD_ASSIGN_OR_RETURN(Kept<CompletionQueue> initiator, KeepQueue(std::move(initiator_queue), "initiator_cq_id"));
  std::shared_ptr<QueuePair> pair(new QueuePair(std::move(kept_domain), std::move(receive), std::move(initiator),
                                                std::move(options), events, observer));
  RNICD_ASSIGN_OR_RETURN(pair->device_,
                         pair->domain_->device().CreateQueuePair(pair->limits_, pair->receive_queue_->device(),
                                                                 pair->initiator_queue_->device(), *pair));
  return pair;
}

QueuePair::QueuePair(Kept<ProtectionDomain> domain, Kept<CompletionQueue> receive_queue,
                     Kept<CompletionQueue> initiator_queue, Options options, EventQueue& events, Observer& observer)
    : Closable("qp_id"),
      domain_(std::move(domain)),
      receive_queue_(std::move(receive_queue)),
      initiator_queue_(std::move(initiator_queue)),
      limits_(options.limits),
      context_(options.context),
      charge_(std::move(options.charge)),
      held_{.entries = std::move(options.entries), .lists = std::move(options.lists), .address = nullptr},
      events_(events),
      observer_(observer) {}

void QueuePair::Publish(QueuePairId id, std::function<void()> on_peer_lost) {
  MutexLock lock(mutex_);
  id_ = id.value;
  peer_loss_.flush = std::move(on_peer_lost);
}

absl::StatusOr<RemoteToken> QueuePair::Enqueue(provider::WorkRequest&& request) {
  if (DeadQueue()) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED);
  }
  return device_->Enqueue(std::move(request));
}

void QueuePair::EnqueueRefused(const WorkRequest& request, const absl::Status& refusal) {
  const ErrorReason reason = ErrorInfoOf(refusal).reason;
  device_->EnqueueRefused({.request_context = request.request_context,
                           .type = TypeOf(request),
                           .status = NtStatusOf(refusal),
                           .refusal = reason == ErrorReason::UNSPECIFIED ? ErrorReason::DEVICE_FAILED : reason});
}

void QueuePair::OnCompletion(provider::WorkQueue queue, const provider::Completion& completion) {
  // NDK: when a completion queue is dead its queue pairs are dead too, and report nothing more.
  if (DeadQueue()) {
    return;
  }
  observer_.Report(WorkRequestCompleted{.operation = completion.type, .status = completion.status});
  CompletionQueue& target = queue == provider::WorkQueue::kReceive ? *receive_queue_ : *initiator_queue_;
  target.Push(AsOwnerSees(completion, context_, QueuePairId{id_}), completion.solicited);
}

absl::Status QueuePair::Tie(std::function<void()> on_peer_lost) {
  const QueuePairState now = state();
  if (now == QueuePairState::kError) {
    return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
  }
  MutexLock lock(mutex_);
  if (now != QueuePairState::kInit || peer_loss_.tie != nullptr) {
    return MakeError(ErrorReason::CONNECTION_ACTIVE, "qp_id");
  }
  peer_loss_.tie = std::move(on_peer_lost);
  return absl::OkStatus();
}

void QueuePair::Untie() {
  MutexLock lock(mutex_);
  peer_loss_.tie = nullptr;
}

absl::Status QueuePair::CheckUntied() const {
  MutexLock lock(mutex_);
  return peer_loss_.tie == nullptr ? absl::OkStatus() : MakeError(ErrorReason::CONNECTION_ACTIVE, "qp_id");
}

// The card may report that, too.
void QueuePair::LoseCard() {
  const bool had_peer = device_->state() == QueuePairState::kReadyToSend;
  device_->Flush();
  if (had_peer) {
    OnPeerDisconnected();
  }
}

void QueuePair::OnPeerDisconnected() {
  std::function<void()> on_peer_lost;
  std::function<void()> tie;
  {
    MutexLock lock(mutex_);
    if (peer_loss_.closed || std::exchange(peer_loss_.told, true)) {
      return;
    }
    on_peer_lost = std::move(peer_loss_.flush);
    tie = peer_loss_.tie;
  }
  if (on_peer_lost != nullptr) {
    on_peer_lost();
  }
  if (tie != nullptr) {
    tie();
    return;
  }
  if (const std::shared_ptr<Closable> self = weak_from_this().lock(); self != nullptr) {
    events_.PushSource(std::shared_ptr<EventSource>(self, this));
  }
}

EventSource::Taken QueuePair::TakeEvent() {
  MutexLock lock(mutex_);
  if (peer_loss_.closed) {
    return {};
  }
  return {.body = QpDisconnected{.queue_pair = QueuePairId{id_}, .context = context_}};
}

void QueuePair::Finalize() {
  device_->Shutdown();
  {
    MutexLock lock(mutex_);
    peer_loss_.closed = true;
  }
  events_.Withdraw(*this);
  held_.address = nullptr;
  device_.reset();
  held_.entries.Refund();
  held_.lists.Refund();
}

void QueuePair::ReleaseParents() {
  receive_queue_.Release();
  initiator_queue_.Release();
  domain_.Release();
}

}  // namespace rnicd::core
