#include "daemon/service/health_stream.h"

#include <utility>

namespace rnicd::service {

using grpc::health::v1::HealthCheckResponse;

HealthCheckResponse::ServingStatus ToServingStatus(bool ready) {
  return ready ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

// Subscribes before the first response, so that no change is missed.
HealthStream::HealthStream(std::shared_ptr<gate::Call> call, health::HealthBoard* board)
    : call_(std::move(call)), board_(board), state_(std::make_shared<State>()) {
  {
    MutexLock lock(state_->mutex);
    state_->stream = this;
  }
  if (board_ != nullptr) {
    subscription_ = board_->Subscribe([state = state_] { Pump(*state); });
  }
  Pump(*state_);
}

void HealthStream::Pump(State& state) {
  MutexLock lock(state.mutex);
  if (state.stream == nullptr || state.writing || state.finished) {
    return;
  }
  const Response::ServingStatus current = state.stream->Current();
  if (state.told == current) {
    return;
  }
  state.told = current;
  state.writing = true;
  state.stream->response_.set_status(current);
  state.stream->StartWrite(&state.stream->response_);
}

HealthStream::Response::ServingStatus HealthStream::Current() const {
  return board_ != nullptr ? ToServingStatus(board_->ready()) : Response::SERVICE_UNKNOWN;
}

void HealthStream::FinishOnce(State& state) {
  if (!state.finished) {
    state.finished = true;
    Finish(grpc::Status::CANCELLED);
  }
}

void HealthStream::OnWriteDone(bool ok) {
  {
    MutexLock lock(state_->mutex);
    state_->writing = false;
    if (!ok) {
      FinishOnce(*state_);
    }
  }
  Pump(*state_);
}

void HealthStream::OnCancel() {
  MutexLock lock(state_->mutex);
  FinishOnce(*state_);
}

void HealthStream::OnDone() {
  if (board_ != nullptr) {
    board_->Unsubscribe(subscription_);
  }
  {
    MutexLock lock(state_->mutex);
    state_->stream = nullptr;
  }
  call_->Cancel();
  delete this;
}

}  // namespace rnicd::service
