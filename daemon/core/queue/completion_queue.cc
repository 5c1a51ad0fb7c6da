#include "daemon/core/queue/completion_queue.h"

#include <utility>

#include "base/status.h"

namespace rnicd::core {

absl::StatusOr<std::shared_ptr<CompletionQueue>> CompletionQueue::Create(std::shared_ptr<Adapter> adapter,
                                                                         Options options, EventQueue& events) {
  RNICD_ASSIGN_OR_RETURN(Kept<Adapter> kept, Adapter::Keep(std::move(adapter)));
  const uint32_t depth = options.depth;
  std::shared_ptr<CompletionQueue> queue(new CompletionQueue(std::move(kept), std::move(options), events));
  RNICD_ASSIGN_OR_RETURN(queue->device_, queue->adapter_->device().CreateCompletionQueue(depth));
  return queue;
}

CompletionQueue::CompletionQueue(Kept<Adapter> adapter, Options options, EventQueue& events)
    : Closable("cq_id"),
      adapter_(std::move(adapter)),
      context_(options.context),
      charge_(std::move(options.charge)),
      events_(events),
      store_(options.depth, std::move(options.entries), std::move(options.mapped), options.mapped_depth_max),
      notifier_(options.mapped_depth_max != 0) {}

void CompletionQueue::Publish(CompletionQueueId id, std::function<void()> on_overrun,
                              std::array<OwnedTicket, 2> tickets) {
  MutexLock lock(mutex_);
  id_ = id;
  on_overrun_ = std::move(on_overrun);
  if (store_.mapped() != nullptr) {
    store_.mapped()->Publish(std::move(tickets));
  }
}

absl::StatusOr<UniqueFd> CompletionQueue::Duplicate(SharedDescriptor which) {
  MutexLock lock(mutex_);
  if (store_.mapped() == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "cq_id");
  }
  return store_.mapped()->Duplicate(which);
}

absl::Status CompletionQueue::Resize(uint32_t depth) {
  MutexLock lock(mutex_);
  if (overrun()) {
    return MakeError(ErrorReason::CQ_OVERRUN, "cq_id");
  }
  return store_.Resize(depth, [this, depth] { return device_->Resize(depth); });
}

bool CompletionQueue::BeginNotification() {
  // Read the client's index only where it is needed: the client can write any value there.
  if (!notifier_.may_begin()) {
    return false;
  }
  MappedResults* const mapped = store_.mapped();
  if (mapped != nullptr) {
    notifier_.OnUnread(mapped->unread());
  }
  const CqNotifier::Due due = notifier_.Begin(overrun());
  if (due != CqNotifier::Due::kNothing && mapped != nullptr) {
    mapped->Notify();
  }
  return due == CqNotifier::Due::kNoticeAndEvent;
}

void CompletionQueue::PushNotification() {
  if (const std::shared_ptr<Closable> self = weak_from_this().lock(); self != nullptr) {
    events_.PushSource(std::shared_ptr<EventSource>(self, this));
  }
}

void CompletionQueue::Arm(CqNotifyType type) {
  {
    MutexLock lock(mutex_);
    notifier_.Arm(type);
    if (!BeginNotification()) {
      return;
    }
  }
  PushNotification();
}

std::vector<Completion> CompletionQueue::TakeQueued(uint32_t max) {
  std::vector<Completion> results = store_.Take(max);
  notifier_.OnTaken(results.size());
  return results;
}

absl::Status CompletionQueue::CheckTake() const {
  if (store_.is_mapped()) {
    return MakeError(ErrorReason::CQ_MAPPED, "cq_id");
  }
  return overrun() ? MakeError(ErrorReason::CQ_OVERRUN, "cq_id") : absl::OkStatus();
}

absl::StatusOr<std::vector<Completion>> CompletionQueue::Take(uint32_t max) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckTake());
  return TakeQueued(max);
}

// No poll is waiting: it would have taken the completions that fill the queue.
std::function<void()> CompletionQueue::Die() {
  overrun_ = true;
  store_.Fail(NtStatus::kBufferOverflow);
  return std::move(on_overrun_);
}

void CompletionQueue::Push(const Completion& completion, bool solicited) {
  std::function<void()> on_overrun;
  Delivery delivery;
  bool notify = false;
  {
    MutexLock lock(mutex_);
    if (overrun()) {
      return;
    }
    if (store_.full()) {
      on_overrun = Die();
    } else {
      store_.Push(completion);
      notifier_.OnPushed(solicited || !completion.ok());
    }
    notify = BeginNotification();
    delivery = NextDelivery();
  }
  if (notify) {
    PushNotification();
  }
  Deliver(std::move(delivery));
  if (on_overrun != nullptr) {
    on_overrun();
  }
}

EventSource::Taken CompletionQueue::TakeEvent() {
  MutexLock lock(mutex_);
  notifier_.OnFetched();
  if (notifier_.silent()) {
    return {};
  }
  Taken taken;
  taken.body = CqNotified{
      .queue = id_, .context = context_, .status = overrun() ? NtStatus::kBufferOverflow : NtStatus::kSuccess};
  // The overrun is the last event of a queue.
  if (overrun()) {
    notifier_.Silence();
  }
  taken.again = BeginNotification();
  return taken;
}

// Wakes a client that waits for a mapped queue, as well as calls that wait.
void CompletionQueue::Finalize() {
  std::unique_ptr<MappedResults> mapped;
  {
    MutexLock lock(mutex_);
    notifier_.Silence();
    closed_ = true;
    if (!overrun()) {
      store_.Fail(RowOf(ErrorReason::OBJECT_CLOSING).ntstatus);
    }
    mapped = store_.Close();
    on_overrun_ = nullptr;
  }
  EndWaits(MakeError(ErrorReason::OBJECT_CLOSING, "cq_id"));
  events_.Withdraw(*this);
  device_.reset();
}

}  // namespace rnicd::core
