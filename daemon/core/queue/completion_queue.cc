#include "daemon/core/queue/completion_queue.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace rnicd::core {

CqNotifyType CombineArms(CqNotifyType first, CqNotifyType second) {
  if (first == CqNotifyType::kAny || second == CqNotifyType::kAny) {
    return CqNotifyType::kAny;
  }
  return first == CqNotifyType::kSolicited ? first : second;
}

absl::StatusOr<std::shared_ptr<CompletionQueue>> CompletionQueue::Create(std::shared_ptr<Adapter> adapter,
                                                                         Options options, EventQueue& events) {
  RNICD_ASSIGN_OR_RETURN(Hold hold, adapter->Acquire());
  const uint32_t depth = options.depth;
  std::shared_ptr<CompletionQueue> queue(
      new CompletionQueue(std::move(adapter), std::move(hold), std::move(options), events));
  RNICD_ASSIGN_OR_RETURN(queue->device_, queue->adapter_->device().CreateCompletionQueue(depth));
  return queue;
}

CompletionQueue::CompletionQueue(std::shared_ptr<Adapter> adapter, Hold adapter_hold, Options options,
                                 EventQueue& events)
    : Closable("cq_id"),
      adapter_(std::move(adapter)),
      adapter_hold_(std::move(adapter_hold)),
      context_(options.context),
      charge_(std::move(options.charge)),
      mapped_depth_max_(options.mapped_depth_max),
      events_(events),
      depth_(options.depth),
      entries_(std::move(options.entries)),
      mapped_(std::move(options.mapped)) {}

void CompletionQueue::Publish(CompletionQueueId id, std::function<void()> on_overrun,
                              std::array<OwnedTicket, 2> tickets) {
  MutexLock lock(mutex_);
  id_ = id;
  on_overrun_ = std::move(on_overrun);
  if (mapped_ != nullptr) {
    mapped_->Publish(std::move(tickets));
  }
}

absl::StatusOr<UniqueFd> CompletionQueue::Duplicate(SharedDescriptor which) {
  MutexLock lock(mutex_);
  if (mapped_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "cq_id");
  }
  return mapped_->Duplicate(which);
}

size_t CompletionQueue::Backlog() {
  if (mapped_ == nullptr) {
    return results_.size();
  }
  const uint32_t unread = mapped_->unread();
  taken_ = pushed_ - unread;
  return unread;
}

absl::Status CompletionQueue::Resize(uint32_t depth) {
  MutexLock lock(mutex_);
  if (overrun()) {
    return MakeError(ErrorReason::CQ_OVERRUN, "cq_id");
  }
  if (is_mapped() && depth > mapped_depth_max_) {
    return MakeError(ErrorReason::ABOVE_MAPPED_DEPTH, "cq_depth");
  }
  if (Backlog() > depth) {
    return MakeError(ErrorReason::CQ_BACKLOG, "cq_depth");
  }
  if (depth > depth_) {
    RNICD_RETURN_IF_ERROR(entries_.Adjust(depth));
  }
  absl::Status resized = device_->Resize(depth);
  depth_ = resized.ok() ? depth : depth_;
  (void)entries_.Adjust(depth_);  // Refunds: never fails.
  return resized;
}

// NDK: when the queue is armed for a completion newer than the last notification, now; while one is in progress, later.
bool CompletionQueue::BeginNotification() {
  if (silent_ || (notifying_ && !is_mapped()) || !armed_.has_value()) {
    return false;
  }
  (void)Backlog();
  const uint64_t newest = *armed_ == CqNotifyType::kAny         ? pushed_
                          : *armed_ == CqNotifyType::kSolicited ? last_waking_
                                                                : 0;
  if (newest <= std::max(notified_, taken_) && !overrun()) {
    return false;
  }
  armed_.reset();
  notified_ = pushed_;
  if (mapped_ != nullptr) {
    mapped_->Notify();
  }
  return !std::exchange(notifying_, true);
}

void CompletionQueue::PushNotification() {
  if (const std::shared_ptr<Closable> self = weak_from_this().lock(); self != nullptr) {
    events_.PushSource(std::shared_ptr<EventSource>(self, this));
  }
}

void CompletionQueue::Arm(CqNotifyType type) {
  {
    MutexLock lock(mutex_);
    armed_ = armed_.has_value() ? CombineArms(*armed_, type) : type;
    if (!BeginNotification()) {
      return;
    }
  }
  PushNotification();
}

std::vector<Completion> CompletionQueue::TakeQueued(uint32_t max) {
  const auto end = results_.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(max, results_.size()));
  std::vector<Completion> results(results_.begin(), end);
  results_.erase(results_.begin(), end);
  taken_ += results.size();
  return results;
}

absl::Status CompletionQueue::CheckTake() const {
  if (is_mapped()) {
    return MakeError(ErrorReason::CQ_MAPPED, "cq_id");
  }
  return overrun() ? MakeError(ErrorReason::CQ_OVERRUN, "cq_id") : absl::OkStatus();
}

absl::StatusOr<std::vector<Completion>> CompletionQueue::Take(uint32_t max) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckTake());
  return TakeQueued(max);
}

// Nobody waits: a wait would have taken what fills the queue.
std::function<void()> CompletionQueue::Die() {
  overrun_ = true;
  results_.clear();
  if (mapped_ != nullptr) {
    mapped_->Fail(NtStatus::kBufferOverflow);
  }
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
    if (Backlog() >= depth_) {
      on_overrun = Die();
    } else {
      if (mapped_ != nullptr) {
        mapped_->Push(completion);
      } else {
        results_.push_back(completion);
      }
      ++pushed_;
      if (solicited || !completion.ok()) {
        last_waking_ = pushed_;
      }
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
  notifying_ = false;
  if (silent_) {
    return {};
  }
  Taken taken;
  taken.body = CqNotified{
      .queue = id_, .context = context_, .status = overrun() ? NtStatus::kBufferOverflow : NtStatus::kSuccess};
  // The overrun is the last event of a queue.
  silent_ = overrun();
  taken.again = BeginNotification();
  return taken;
}

// A client that waits for a mapped queue is woken, as calls that wait are.
void CompletionQueue::Finalize() {
  std::unique_ptr<MappedResults> mapped;
  {
    MutexLock lock(mutex_);
    silent_ = true;
    closed_ = true;
    if (mapped_ != nullptr && !overrun()) {
      mapped_->Fail(RowOf(ErrorReason::OBJECT_CLOSING).ntstatus);
    }
    mapped = std::move(mapped_);
    results_.clear();
    entries_.Refund();
    on_overrun_ = nullptr;
  }
  EndWaits(MakeError(ErrorReason::OBJECT_CLOSING, "cq_id"));
  events_.Withdraw(*this);
  device_.reset();
}

}  // namespace rnicd::core
