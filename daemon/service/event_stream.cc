#include "daemon/service/event_stream.h"

#include <optional>
#include <utility>

#include "base/status.h"
#include "daemon/service/convert.h"

namespace rnicd::service {

EventStream::EventStream(std::shared_ptr<gate::Call> call)
    : call_(std::move(call)), session_(call_->session()), state_(std::make_shared<State>()) {
  {
    MutexLock lock(state_->mutex);
    state_->stream = this;
  }
  // Confirms the stream to the client, even if the first event comes much later.
  StartSendInitialMetadata();
  attached_ = session_->events().Attach([state = state_] { Pump(*state); });
  if (!attached_) {
    MutexLock lock(state_->mutex);
    FinishOnce(*state_, gate::ToGrpcStatus(MakeError(ErrorReason::EVENT_STREAM_ALREADY_OPEN)));
  }
}

void EventStream::Pump(State& state) {
  MutexLock lock(state.mutex);
  if (state.stream != nullptr && !state.writing && !state.finished) {
    state.stream->WriteNext(state);
  }
}

void EventStream::WriteNext(State& state) {
  const std::optional<core::Event> event = session_->events().Pop();
  if (event.has_value()) {
    response_ = ToWire(*event);
    state.writing = true;
    StartWrite(&response_);
  } else if (session_->events().Drained()) {
    FinishOnce(state, grpc::Status::OK);
  }
}

void EventStream::FinishOnce(State& state, const grpc::Status& status) {
  if (!state.finished) {
    state.finished = true;
    Finish(status);
  }
}

void EventStream::OnWriteDone(bool ok) {
  MutexLock lock(state_->mutex);
  state_->writing = false;
  if (!ok) {
    FinishOnce(*state_, grpc::Status::CANCELLED);
  } else if (!state_->finished) {
    WriteNext(*state_);
  }
}

void EventStream::OnCancel() {
  MutexLock lock(state_->mutex);
  FinishOnce(*state_, grpc::Status::CANCELLED);
}

void EventStream::OnDone() {
  if (attached_) {
    session_->events().Detach();
  }
  {
    MutexLock lock(state_->mutex);
    state_->stream = nullptr;
  }
  call_->Finish(attached_ ? absl::OkStatus() : MakeError(ErrorReason::EVENT_STREAM_ALREADY_OPEN));
  delete this;
}

}  // namespace rnicd::service
