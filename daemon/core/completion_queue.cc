#include "daemon/core/completion_queue.h"

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
      events_(events),
      depth_(options.depth),
      entries_(std::move(options.entries)) {}

void CompletionQueue::Publish(CompletionQueueId id, std::function<void()> on_overrun) {
  MutexLock lock(mutex_);
  id_ = id;
  on_overrun_ = std::move(on_overrun);
}

absl::Status CompletionQueue::Resize(uint32_t depth) {
  MutexLock lock(mutex_);
  if (overrun()) {
    return MakeError(ErrorReason::CQ_OVERRUN, "cq_id");
  }
  if (results_.size() > depth) {
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
  if (silent_ || notifying_ || !armed_.has_value()) {
    return false;
  }
  const uint64_t newest = *armed_ == CqNotifyType::kAny         ? pushed_
                          : *armed_ == CqNotifyType::kSolicited ? last_waking_
                                                                : 0;
  if (newest <= std::max(notified_, taken_) && !overrun()) {
    return false;
  }
  armed_.reset();
  notified_ = pushed_;
  notifying_ = true;
  return true;
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

absl::StatusOr<std::vector<Completion>> CompletionQueue::Take(uint32_t max) {
  MutexLock lock(mutex_);
  if (overrun()) {
    return MakeError(ErrorReason::CQ_OVERRUN, "cq_id");
  }
  return TakeQueued(max);
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
    if (results_.size() >= depth_) {
      // Nobody waits: a wait would have taken what fills the queue.
      overrun_ = true;
      results_.clear();
      on_overrun = std::move(on_overrun_);
    } else {
      results_.push_back(completion);
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

void CompletionQueue::Finalize() {
  {
    MutexLock lock(mutex_);
    silent_ = true;
    closed_ = true;
    results_.clear();
    entries_.Refund();
    on_overrun_ = nullptr;
  }
  EndWaits(MakeError(ErrorReason::OBJECT_CLOSING, "cq_id"));
  events_.Withdraw(*this);
  device_.reset();
}

}  // namespace rnicd::core
