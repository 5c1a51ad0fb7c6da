#include "client/cpp/session/event_stream.h"

#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "client/cpp/channel/channel.h"

namespace rnicd::inline client {

std::shared_ptr<EventStream> EventStream::Start(v1::SessionService::Stub& stub,
                                                std::shared_ptr<PendingRequests> pending,
                                                std::shared_ptr<QueueEvents> queue_events,
                                                std::shared_ptr<ProgressWatch> progress, EndCallback on_end) {
  std::shared_ptr<EventStream> stream(
      new EventStream(std::move(pending), std::move(queue_events), std::move(progress), std::move(on_end)));
  stream->self_ = stream;
  stub.async()->WatchEvents(&stream->context_, &stream->request_, stream.get());
  stream->StartRead(&stream->event_);
  stream->StartCall();
  return stream;
}

bool EventStream::Stop(std::chrono::milliseconds wait_max) {
  ExpectEnd();
  context_.TryCancel();
  if (callback_thread_ == std::this_thread::get_id()) {
    return false;
  }
  const Instant deadline = Instant::clock::now() + wait_max;
  MutexLock lock(done_->mutex);
  while (!done_->reached && done_->changed.WaitUntil(done_->mutex, deadline)) {
  }
  return done_->reached;
}

void EventStream::OnReadDone(bool ok) {
  if (!ok) {
    return;
  }
  callback_thread_ = std::this_thread::get_id();
  if (event_.has_request_completed()) {
    pending_->Complete(event_.request_completed());
  } else if (event_.has_cq_notification()) {
    queue_events_->Deliver(event_.cq_notification());
  } else if (event_.has_qp_disconnected()) {
    queue_events_->Deliver(event_.qp_disconnected());
  } else if (event_.has_memory_progress()) {
    progress_->Deliver(event_.memory_progress());
  } else if (event_.has_session_ending()) {
    end_ = MakeError(ErrorReason::SESSION_ENDING, event_.session_ending().cause());
  }
  callback_thread_ = std::thread::id();
  StartRead(&event_);
}

void EventStream::OnDone(const grpc::Status& status) {
  callback_thread_ = std::this_thread::get_id();
  if (end_.ok()) {
    end_ = status.ok() || end_expected_ ? MakeError(ErrorReason::SESSION_ENDING) : StatusFromGrpc(status);
  }
  pending_->Close(end_);
  queue_events_->Close(end_);
  if (on_end_ && !end_expected_) {
    on_end_(end_);
  }
  callback_thread_ = std::thread::id();
  const std::shared_ptr<Done> done = done_;
  // Often the last use of `this`: nothing below may touch a member.
  std::shared_ptr<EventStream>(std::move(self_)).reset();
  MutexLock lock(done->mutex);
  done->reached = true;
  done->changed.NotifyAll();
}

}  // namespace rnicd::inline client
