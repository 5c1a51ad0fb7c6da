#include "daemon/core/request/event_queue.h"

#include <utility>

namespace rnicd::core {

namespace {

// Refunded here and not by its last owner: the request's worker may still hold a share.
void RefundChargeOf(EventBody& body) {
  auto* completed = std::get_if<RequestCompleted>(&body);
  if (completed != nullptr && completed->charge != nullptr) {
    completed->charge->Refund();
  }
}

}  // namespace

void EventQueue::Push(EventBody body) { Append(std::move(body), false); }

void EventQueue::PushSource(std::shared_ptr<EventSource> source) { Append(std::move(source), false); }

void EventQueue::Finish(SessionEnding last) {
  Append(EventBody(last), true);
  MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (auto* body = std::get_if<EventBody>(&entry); body != nullptr) {
      RefundChargeOf(*body);
    }
  }
}

void EventQueue::Append(Entry entry, bool last) {
  std::function<void()> wake_up;
  {
    MutexLock lock(mutex_);
    if (finished_) {
      return;
    }
    entries_.push_back(std::move(entry));
    finished_ = last;
    wake_up = wake_up_;
  }
  if (wake_up != nullptr) {
    wake_up();
  }
}

void EventQueue::Withdraw(const EventSource& source) {
  MutexLock lock(mutex_);
  std::erase_if(entries_, [&source](const Entry& entry) {
    const auto* held = std::get_if<std::shared_ptr<EventSource>>(&entry);
    return held != nullptr && held->get() == &source;
  });
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
  std::optional<EventBody> body = PopBody();
  if (!body.has_value()) {
    return std::nullopt;
  }
  RefundChargeOf(*body);
  MutexLock lock(mutex_);
  return Event{next_sequence_++, *std::move(body)};
}

std::optional<EventBody> EventQueue::PopBody() {
  while (true) {
    std::shared_ptr<EventSource> source;
    {
      MutexLock lock(mutex_);
      if (entries_.empty()) {
        return std::nullopt;
      }
      Entry entry = std::move(entries_.front());
      entries_.pop_front();
      if (auto* body = std::get_if<EventBody>(&entry); body != nullptr) {
        return std::move(*body);
      }
      source = std::get<std::shared_ptr<EventSource>>(std::move(entry));
    }
    EventSource::Taken taken = source->TakeEvent();
    if (taken.again) {
      MutexLock lock(mutex_);
      // Before the last event, which stays the last.
      entries_.insert(finished_ && !entries_.empty() ? entries_.end() - 1 : entries_.end(), std::move(source));
    }
    if (taken.body.has_value()) {
      return std::move(taken.body);
    }
  }
}

bool EventQueue::Drained() const {
  MutexLock lock(mutex_);
  return finished_ && entries_.empty();
}

}  // namespace rnicd::core
