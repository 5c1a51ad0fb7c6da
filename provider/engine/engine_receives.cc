#include "provider/engine/engine_receives.h"

#include <utility>

#include "base/status.h"

namespace rnicd::provider {

absl::Status EngineReceives::CheckRoom() const {
  if (gate_ == Gate::kShut) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED);
  }
  return queue_.size() < depth_ ? absl::OkStatus() : MakeError(ErrorReason::QUEUE_FULL);
}

EngineRequest& EngineReceives::Push(std::unique_ptr<EngineRequest> request) {
  EngineRequest& receive = queue_.Push(std::move(request));
  receive.stage = EngineRequest::Stage::kQueued;
  if (gate_ == Gate::kFailed) {
    receive.End({.status = NtStatus::kCancelled});
  }
  return receive;
}

bool EngineReceives::PushRefused(std::unique_ptr<EngineRequest> request) {
  if (gate_ != Gate::kShut && queue_.size() <= depth_) {
    const NtStatus status = gate_ == Gate::kOpen ? request->result.status : NtStatus::kCancelled;
    queue_.Push(std::move(request)).End({.status = status});
  }
  return gate_ != Gate::kShut;
}

void EngineReceives::Fail() { gate_ = gate_ == Gate::kOpen ? Gate::kFailed : gate_; }

bool EngineReceives::Shut() { return std::exchange(gate_, Gate::kShut) != Gate::kShut; }

EngineRequest* EngineReceives::Find(uint64_t serial) const {
  EngineRequest* const receive = queue_.Find(serial);
  return receive != nullptr && receive->stage != EngineRequest::Stage::kDone ? receive : nullptr;
}

EngineRequest* EngineReceives::TakeOldest() {
  if (queue_.begun() == queue_.size() || queue_[queue_.begun()].stage == EngineRequest::Stage::kDone) {
    sender_waits_ = true;
    return nullptr;
  }
  EngineRequest& receive = queue_.Begin();
  receive.stage = EngineRequest::Stage::kRunning;
  return &receive;
}

EngineRequest* EngineReceives::Take(uint64_t serial) {
  EngineRequest* const receive = Find(serial);
  if (receive != nullptr) {
    receive->stage = EngineRequest::Stage::kRunning;
  }
  return receive;
}

bool EngineReceives::End(uint64_t serial, const Completion& result) {
  EngineRequest* const receive = Find(serial);
  if (receive != nullptr) {
    receive->stage = EngineRequest::Stage::kDone;
    receive->result = result;
  }
  return receive != nullptr;
}

void EngineReceives::Abandon() {
  for (size_t index = 0; index < queue_.size(); ++index) {
    if (queue_[index].stage == EngineRequest::Stage::kQueued) {
      queue_[index].End({.status = NtStatus::kCancelled});
    }
  }
}

bool EngineReceives::WakesSender() {
  const bool wakes = sender_waits_ && gate_ == Gate::kOpen && queue_.begun() < queue_.size();
  sender_waits_ = sender_waits_ && !wakes;
  return wakes;
}

std::unique_ptr<EngineRequest> EngineReceives::BeginReport() {
  if (!MayReport()) {
    return nullptr;
  }
  reporting_ = true;
  return queue_.PopFront();
}

}  // namespace rnicd::provider
