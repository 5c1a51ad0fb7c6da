#include "client/cpp/session/queue_events.h"

#include <utility>

#include "base/ntstatus.h"
#include "base/status.h"

namespace rnicd::inline client {
namespace {

absl::Status OutcomeOf(const v1::CqNotification& event) {
  const auto status = static_cast<NtStatus>(event.ntstatus());
  return status == NtStatus::kSuccess ? absl::OkStatus() : QueueFailure(status);
}

}  // namespace

absl::Status QueueFailure(NtStatus status) {
  return status == NtStatus::kBufferOverflow ? MakeError(ErrorReason::CQ_OVERRUN, "cq_id")
                                             : MakeErrorWithDetail(ErrorReason::DEVICE_FAILED, NtStatusName(status));
}

void QueueEvents::Watch(CompletionQueueId id, CqHandler handler) {
  absl::Status closed;
  {
    MutexLock lock(mutex_);
    if (closed_.ok()) {
      cq_handlers_.insert_or_assign(id, std::move(handler));
      return;
    }
    closed = closed_;
  }
  handler(closed);
}

void QueueEvents::Watch(EndId id, EndHandler handler) {
  MutexLock lock(mutex_);
  end_handlers_.insert_or_assign(id, std::move(handler));
}

void QueueEvents::Remove(CompletionQueueId id) {
  MutexLock lock(mutex_);
  cq_handlers_.erase(id);
}

void QueueEvents::Remove(EndId id) {
  EndHandler forgotten;
  MutexLock lock(mutex_);
  if (auto node = end_handlers_.extract(id); !node.empty()) {
    forgotten = std::move(node.mapped());
  }
  while (running_ == id && running_on_ != std::this_thread::get_id()) {
    handler_returned_.Wait(mutex_);
  }
}

void QueueEvents::Deliver(const v1::CqNotification& event) {
  CqHandler handler;
  {
    MutexLock lock(mutex_);
    const auto found = cq_handlers_.find(CompletionQueueId{event.cq_id()});
    if (found == cq_handlers_.end()) {
      return;
    }
    handler = found->second;
  }
  handler(OutcomeOf(event));
}

void QueueEvents::Disconnected(EndId id) {
  EndHandler handler;
  {
    MutexLock lock(mutex_);
    auto node = end_handlers_.extract(id);
    if (node.empty()) {
      return;
    }
    handler = std::move(node.mapped());
    running_ = id;
    running_on_ = std::this_thread::get_id();
  }
  handler();
  // The handler is destroyed before its end is signalled, so that a waiter finds everything it held released.
  handler = nullptr;
  MutexLock lock(mutex_);
  running_ = EndId{};
  running_on_ = std::thread::id();
  handler_returned_.NotifyAll();
}

void QueueEvents::Close(const absl::Status& why) {
  std::map<CompletionQueueId, CqHandler> ended;
  std::map<EndId, EndHandler> forgotten;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) {
      return;
    }
    closed_ = why;
    ended.swap(cq_handlers_);
    forgotten.swap(end_handlers_);
  }
  for (const auto& [id, handler] : ended) {
    handler(why);
  }
}

}  // namespace rnicd::inline client
