#include "daemon/core/event_queue.h"

#include <utility>

namespace rnicd::core {

void EventQueue::Push(std::variant<RequestCompleted, SessionEnding> body) { Append(std::move(body), false); }

void EventQueue::Finish(SessionEnding last) {
  Append(last, true);
  MutexLock lock(mutex_);
  for (Event& event : events_) {
    auto* completed = std::get_if<RequestCompleted>(&event.body);
    if (completed != nullptr && completed->charge != nullptr) {
      completed->charge->Refund();
    }
  }
}

void EventQueue::Append(std::variant<RequestCompleted, SessionEnding> body, bool last) {
  std::function<void()> wake_up;
  {
    MutexLock lock(mutex_);
    if (finished_) {
      return;
    }
    events_.push_back(Event{next_sequence_++, std::move(body)});
    finished_ = last;
    wake_up = wake_up_;
  }
  if (wake_up != nullptr) {
    wake_up();
  }
}

bool EventQueue::Attach(std::function<void()> wake_up) {
  const std::function<void()> wake_now = wake_up;
  {
    MutexLock lock(mutex_);
    if (wake_up_ != nullptr) {
      return false;
    }
    wake_up_ = std::move(wake_up);
  }
  wake_now();
  return true;
}

void EventQueue::Detach() {
  MutexLock lock(mutex_);
  wake_up_ = nullptr;
}

std::optional<Event> EventQueue::Pop() {
  MutexLock lock(mutex_);
  if (events_.empty()) {
    return std::nullopt;
  }
  Event event = std::move(events_.front());
  events_.pop_front();
  // Given back here and not by its last owner: the request's worker may still hold a share.
  auto* completed = std::get_if<RequestCompleted>(&event.body);
  if (completed != nullptr && completed->charge != nullptr) {
    completed->charge->Refund();
  }
  return event;
}

bool EventQueue::Drained() const {
  MutexLock lock(mutex_);
  return finished_ && events_.empty();
}

}  // namespace rnicd::core
