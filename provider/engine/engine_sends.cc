#include "provider/engine/engine_sends.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace rnicd::provider {
namespace {

bool InvalidatesLocally(const EngineRequest& request) {
  const auto* read = std::get_if<ReadWork>(&request.work.work);
  return read != nullptr && read->local_invalidate;
}

}  // namespace

// --- the gate ---

void EngineSends::Open(uint32_t read_limit) {
  gate_ = gate_ == Gate::kUnconnected ? Gate::kOpen : gate_;
  rules_.read_limit = read_limit > 0 ? read_limit : rules_.read_limit;
}

void EngineSends::Drain() { gate_ = std::max(gate_, Gate::kDraining); }

void EngineSends::Fail(NtStatus cause) {
  gate_ = std::max(gate_, Gate::kFailed);
  cause_ = cause;
}

void EngineSends::Abandon() {
  gate_ = Gate::kAbandoned;
  for (size_t index = 0; index < queue_.begun(); ++index) {
    if (queue_[index].stage != Stage::kRunning) {
      End(queue_[index], {.status = NtStatus::kCancelled});
    }
  }
}

absl::Status EngineSends::CheckRoom() const {
  if (gate_ != Gate::kOpen) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED);
  }
  return queue_.size() < depth_ ? absl::OkStatus() : MakeError(ErrorReason::QUEUE_FULL);
}

EngineRequest& EngineSends::Push(std::unique_ptr<EngineRequest> request) {
  request->stage = Stage::kQueued;
  return queue_.Push(std::move(request));
}

bool EngineSends::PushRefused(std::unique_ptr<EngineRequest> request) {
  if (queue_.size() > depth_) {
    return false;
  }
  Push(std::move(request));
  return gate_ == Gate::kUnconnected;
}

// --- the runner ---

std::unique_ptr<EngineRequest> EngineSends::PopEnded() {
  if (gate_ >= Gate::kFailed && !queue_.empty() &&
      (queue_.front().stage == Stage::kQueued || queue_.front().stage == Stage::kResumed)) {
    End(queue_.front(), {.status = NtStatus::kCancelled});
  }
  if (!queue_.FrontIsDone()) {
    return nullptr;
  }
  std::unique_ptr<EngineRequest> request = queue_.PopFront();
  NtStatus& status = request->result.status;
  if (reported_failure_ && status == NtStatus::kSuccess) {
    status = NtStatus::kCancelled;
  } else if (!reported_failure_ && status == NtStatus::kCancelled) {
    status = cause_;
  }
  return request;
}

bool EngineSends::MayBegin(bool reaches_peer) const {
  return gate_ < Gate::kFailed &&
         (resumed_ > 0 || (queue_.begun() < queue_.size() && MayBegin(queue_[queue_.begun()], reaches_peer)));
}

bool EngineSends::MayBegin(const EngineRequest& request, bool reaches_peer) const {
  if (gate_ != Gate::kOpen) {
    return false;
  }
  if (request.IsRefused()) {
    return queue_.begun() == 0;
  }
  if (queue_.begun() > 0) {
    const EngineRequest& last = queue_[queue_.begun() - 1];
    if ((last.holds_back && last.stage != Stage::kDone) ||
        (rules_.local_requests_alone && (last.IsLocal() || InvalidatesLocally(last)))) {
      return false;
    }
  }
  if (rules_.read_limit > 0 &&
      ((request.work.read_fence && reading_ > 0) || (request.IsRead() && reading_ >= rules_.read_limit))) {
    return false;
  }
  return request.IsLocal() ? !rules_.local_requests_alone || queue_.begun() == 0 : reaches_peer;
}

EngineRequest& EngineSends::Begin(EngineTurn& turn) {
  turn.is_first = queue_.begun() == 0;
  turn.resumed = resumed_ > 0;
  size_t index = 0;
  while (turn.resumed && queue_[index].stage != Stage::kResumed) {
    ++index;
  }
  EngineRequest& request = turn.resumed ? queue_[index] : queue_.Begin();
  Leave(request);
  request.stage = Stage::kRunning;
  const auto* const send = std::get_if<SendWork>(&request.work.work);
  request.holds_back = rules_.awaits_invalidations && turn.peer_is_local && !answers_ended_ && send != nullptr &&
                       send->invalidate.has_value();
  awaited_ = request.holds_back ? &request : awaited_;
  return request;
}

EngineRequest* EngineSends::BeginTogether() {
  if (queue_.begun() == queue_.size() || !queue_[queue_.begun()].IsLocal()) {
    return nullptr;
  }
  EngineRequest& request = queue_.Begin();
  request.stage = Stage::kRunning;
  return &request;
}

bool EngineSends::Settle(EngineRequest& request, const BeginResult& result) {
  switch (result.kind) {
    case BeginResult::Kind::kBlocked:
      Leave(request);  // Resumed too late, while it was running.
      request.stage = Stage::kQueued;
      queue_.UndoBegin();
      return gate_ >= Gate::kFailed;  // It is cancelled then.
    case BeginResult::Kind::kStarted:
      request.holds_back = request.holds_back || result.holds_back;
      if (request.stage == Stage::kRunning) {
        request.stage = Stage::kStarted;
        reading_ += request.IsRead() ? 1 : 0;
      }
      if (gate_ == Gate::kAbandoned) {
        End(request, {.status = NtStatus::kCancelled});
      }
      return true;
    case BeginResult::Kind::kDone:
      End(request, result.outcome);
  }
  return true;
}

// --- results ---

void EngineSends::Leave(const EngineRequest& request) {
  reading_ -= request.stage == Stage::kStarted && request.IsRead() ? 1 : 0;
  resumed_ -= request.stage == Stage::kResumed ? 1 : 0;
  awaited_ = awaited_ == &request ? nullptr : awaited_;
}

// Does nothing to a request that has ended: its first result is reported.
void EngineSends::End(EngineRequest& request, const CardOutcome& outcome) {
  if (request.stage != Stage::kDone) {
    Leave(request);
    request.End(outcome);
  }
}

bool EngineSends::End(uint64_t serial, CardOutcome& outcome) {
  EngineRequest* const request = queue_.Find(serial);
  if (request == nullptr || request->stage == Stage::kDone) {
    return false;
  }
  const bool awaits_answer = request == awaited_ && outcome.status == NtStatus::kSuccess;
  if (awaits_answer && !answers_ended_) {
    request->stage = Stage::kUnanswered;
    return true;
  }
  outcome.status = awaits_answer ? NtStatus::kIoTimeout : outcome.status;
  End(*request, outcome);
  return true;
}

bool EngineSends::Answer(bool invalidated) {
  EngineRequest* const request = std::exchange(awaited_, nullptr);
  if (request == nullptr || (invalidated && request->stage != Stage::kUnanswered)) {
    return false;  // The card's result ends it.
  }
  End(*request, {.status = invalidated ? NtStatus::kSuccess : NtStatus::kRemoteResources});
  return true;
}

void EngineSends::EndAnswers() {
  answers_ended_ = true;
  if (awaited_ != nullptr && awaited_->stage == Stage::kUnanswered) {
    End(*awaited_, {.status = NtStatus::kIoTimeout});
  }
}

// A request whose Begin has not returned may be resumed too.
bool EngineSends::Resume(uint64_t serial) {
  EngineRequest* const request = queue_.Find(serial);
  if (request == nullptr || (request->stage != Stage::kStarted && request->stage != Stage::kRunning)) {
    return false;
  }
  Resume(*request);
  return true;
}

void EngineSends::Resume(EngineRequest& request) {
  Leave(request);
  request.stage = Stage::kResumed;
  ++resumed_;
}

void EngineSends::ResumeAll() {
  for (size_t index = 0; index < queue_.begun(); ++index) {
    if (queue_[index].stage == Stage::kStarted) {
      Resume(queue_[index]);
    }
  }
}

}  // namespace rnicd::provider
