// The part of CompletionQueue that serves polls that wait.

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "daemon/core/queue/completion_queue.h"

namespace rnicd::core {

absl::StatusOr<std::optional<std::vector<Completion>>> CompletionQueue::TakeOrWait(
    const std::shared_ptr<CqWait>& wait) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckTake());
  if (closed_) {
    return MakeError(ErrorReason::OBJECT_CLOSING, "cq_id");
  }
  if (store_.has_results() || wait->max == 0 || wait->over) {
    wait->over = true;
    return TakeQueued(wait->max);
  }
  waits_.push_back(wait);
  return std::nullopt;
}

void CompletionQueue::EndWait(const std::shared_ptr<CqWait>& wait) {
  {
    MutexLock lock(mutex_);
    wait->over = true;
    // Near the front, where waits are of similar length.
    const auto found = std::find(waits_.begin(), waits_.end(), wait);
    if (found == waits_.end()) {
      return;  // It has ended, or TakeOrWait has not been called yet.
    }
    waits_.erase(found);
  }
  (void)wait->done(std::vector<Completion>());
}

void CompletionQueue::EndWaits(const absl::Status& error) {
  std::list<std::shared_ptr<CqWait>> ended;
  {
    MutexLock lock(mutex_);
    ended.swap(waits_);
    for (const std::shared_ptr<CqWait>& wait : ended) {
      wait->over = true;
    }
  }
  for (const std::shared_ptr<CqWait>& wait : ended) {
    (void)wait->done(error);
  }
}

CompletionQueue::Delivery CompletionQueue::NextDelivery() {
  if (waits_.empty() || !store_.has_results()) {
    return {};
  }
  Delivery delivery{.wait = std::move(waits_.front())};
  waits_.pop_front();
  delivery.wait->over = true;
  delivery.results = TakeQueued(delivery.wait->max);
  return delivery;
}

// A client may give up at the moment when its completions are taken. They go back to the front, where the next poll
// finds them.
void CompletionQueue::Deliver(Delivery delivery) {
  while (delivery.wait != nullptr && !delivery.wait->done(delivery.results)) {
    bool notify = false;
    {
      MutexLock lock(mutex_);
      if (overrun() || closed_) {
        return;
      }
      store_.Return(delivery.results);
      notifier_.OnReturned(delivery.results.size());
      notify = BeginNotification();
      delivery = NextDelivery();
    }
    if (notify) {
      PushNotification();
    }
  }
}

}  // namespace rnicd::core
