#include "client/cpp/session/event_stream.h"

#include <optional>

#include "base/status.h"
#include "base/system/this_thread.h"
#include "client/cpp/channel/methods.h"

namespace rnicd::inline client {

std::shared_ptr<EventStream> EventStream::Open(std::shared_ptr<Channel> channel, Receivers receivers, Options options) {
  channel->OpenEvents(kWatchEvents.path, v1::WatchEventsRequest().SerializeAsString());
  std::shared_ptr<EventStream> stream(new EventStream(std::move(channel), std::move(receivers), std::move(options)));
  if (stream->options_.on_end || stream->options_.on_adapter_removed) {
    stream->ExpectCallbacks();
  }
  return stream;
}

// The last user may be the thread itself.
EventStream::~EventStream() {
  MutexLock lock(mutex_);
  if (thread_.joinable()) {
    thread_.detach();
  }
}

void EventStream::ExpectCallbacks() {
  MutexLock lock(mutex_);
  if (!options_.by_progress && !ended_ && !thread_.joinable()) {
    thread_ = std::thread([self = shared_from_this()] { self->Run(); });
  }
}

void EventStream::Run() {
  NameThread("rnicd-events");
  const auto is_due = [this] {
    MutexLock lock(mutex_);
    return !due_.empty() || end_due_;
  };
  const auto goes_on = [this] {
    MutexLock lock(mutex_);
    return !ended_ || end_due_ || !due_.empty();
  };
  while (goes_on()) {
    Await(Instant::max(), is_due);
    RunDue();
  }
  MutexLock lock(mutex_);
  thread_ended_ = true;
  changed_.NotifyAll();
}

bool EventStream::Await(Instant deadline, absl::FunctionRef<bool()> done) {
  for (;;) {
    const uint64_t taken = channel_->events_taken();
    Take();
    {
      // Another thread may have taken an event already and still deliver it, under the lock.
      MutexLock lock(mutex_);
    }
    if (done()) {
      return true;
    }
    if (!channel_->AwaitEvents(taken, deadline)) {
      return false;
    }
  }
}

void EventStream::Poll() {
  channel_->ReadWaiting();
  Take();
}

void EventStream::Take() {
  if (!channel_->has_events()) {
    return;
  }
  bool run_here = false;
  {
    MutexLock lock(mutex_);
    const Channel::Events events = channel_->TakeEvents();
    for (const std::string& message : events.messages) {
      TakeOne(message);
    }
    if (events.end.has_value() && !ended_) {
      TakeEnd(*events.end);
    }
    // Without a thread nothing of the program is called.
    run_here = !options_.by_progress && !thread_.joinable();
    if (options_.by_progress && (end_due_ || !due_.empty())) {
      descriptor_.Signal();
    }
  }
  if (run_here) {
    RunDue();
  }
}

void EventStream::TakeOne(const std::string& message) {
  v1::WatchEventsResponse event;
  if (!event.ParseFromString(message)) {
    return;
  }
  if (!DeliverAtOnce(event)) {
    due_.push_back(std::move(event));
  }
}

bool EventStream::DeliverAtOnce(const v1::WatchEventsResponse& event) {
  if (event.has_cq_notification()) {
    receivers_.queues->Deliver(event.cq_notification());
    return true;
  }
  if (event.has_session_ending()) {
    end_ = MakeError(ErrorReason::SESSION_ENDING, event.session_ending().cause());
    return true;
  }
  if (event.has_connect_event()) {
    return receivers_.connections->Deliver(event.connect_event());
  }
  if (event.has_disconnect_event()) {
    receivers_.connections->Deliver(event.disconnect_event());
  }
  return false;
}

void EventStream::TakeEnd(const absl::Status& why) {
  ended_ = true;
  end_due_ = true;
  if (end_.ok()) {
    end_ = why.ok() || end_expected_ ? MakeError(ErrorReason::SESSION_ENDING) : why;
  }
  options_.end_rings(end_);
  receivers_.queues->Close(end_);
  receivers_.connections->Close(end_);
}

void EventStream::RunDue() {
  for (;;) {
    std::optional<v1::WatchEventsResponse> event;
    {
      MutexLock lock(mutex_);
      if (!due_.empty()) {
        event = std::move(due_.front());
        due_.pop_front();
      } else if (!std::exchange(end_due_, false)) {
        return;
      }
    }
    if (event.has_value()) {
      CallBack(*event);
    } else {
      ReportEnd();
    }
  }
}

void EventStream::CallBack(const v1::WatchEventsResponse& event) {
  if (event.has_request_completed()) {
    receivers_.pending->Complete(event.request_completed());
  } else if (event.has_qp_disconnected()) {
    receivers_.queues->Deliver(event.qp_disconnected());
  } else if (event.has_disconnect_event()) {
    receivers_.queues->Deliver(event.disconnect_event());
  } else if (event.has_connect_event()) {
    options_.close_request(ConnectorId{event.connect_event().connector_id()});
  } else if (event.has_memory_progress()) {
    receivers_.progress->Deliver(event.memory_progress());
  } else if (event.has_adapter_removed() && options_.on_adapter_removed) {
    options_.on_adapter_removed();
  }
}

void EventStream::ReportEnd() {
  absl::Status end;
  {
    MutexLock lock(mutex_);
    end = end_;
  }
  receivers_.pending->Close(end);
  if (options_.on_end && !end_expected_) {
    options_.on_end(end);
  }
}

void EventStream::Progress(Instant deadline) {
  const auto is_due = [this] {
    MutexLock lock(mutex_);
    return !due_.empty() || end_due_ || ended_;
  };
  Poll();
  Await(deadline, is_due);
  {
    MutexLock lock(mutex_);
    descriptor_.Clear(ended_);
  }
  RunDue();
}

absl::StatusOr<int> EventStream::Descriptor() {
  MutexLock lock(mutex_);
  absl::StatusOr<int> descriptor = descriptor_.Open(channel_->descriptor());
  if (end_due_ || !due_.empty()) {
    descriptor_.Signal();
  }
  return descriptor;
}

void EventStream::Stop(std::chrono::milliseconds wait_max) {
  ExpectEnd();
  channel_->Close();
  Take();
  if (options_.by_progress) {
    RunDue();
  }
  const Instant deadline = Instant::clock::now() + wait_max;
  MutexLock lock(mutex_);
  if (!thread_.joinable() || thread_.get_id() == std::this_thread::get_id()) {
    return;
  }
  while (!thread_ended_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  if (thread_ended_) {
    thread_.join();
  }
}

}  // namespace rnicd::inline client
