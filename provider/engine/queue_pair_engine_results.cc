// Results that the card, its threads and visitors give to the runner; receives.

#include <utility>

#include "provider/engine/queue_pair_engine.h"

namespace rnicd::provider {

// --- results ---

// Does nothing to a request that has ended: its first result is reported.
void QueuePairEngine::End(EngineRequest& request, NtStatus status, bool at_peer) {
  if (request.stage == Stage::kDone) {
    return;
  }
  reading_ -= request.stage == Stage::kStarted && request.IsRead() ? 1 : 0;
  resumed_ -= request.stage == Stage::kResumed ? 1 : 0;
  request.stage = Stage::kDone;
  awaited_ = awaited_ == &request ? nullptr : awaited_;
  request.result.status = status;
  request.result.at_peer = at_peer;
}

bool QueuePairEngine::Ended(uint64_t serial, CardOutcome outcome) {
  // Before the request ends: the report is ignored once this side is in error.
  if (outcome.peer_lost) {
    LosePeer();
  }
  {
    MutexLock lock(mutex_);
    EngineRequest* const request = sends_.Find(serial);
    if (request == nullptr || request->stage == Stage::kDone) {
      return false;
    }
    if (request == awaited_ && outcome.status == NtStatus::kSuccess) {
      if (!peer_ended_) {
        request->stage = Stage::kUnanswered;
        return true;
      }
      outcome.status = NtStatus::kIoTimeout;  // The peer ended without an answer.
    }
    End(*request, outcome.status, outcome.at_peer);
  }
  if (outcome.status != NtStatus::kSuccess) {
    FailWith(outcome);
  }
  return true;
}

void QueuePairEngine::Invalidated(RemoteToken token, bool invalidated, Completion& receive) {
  if (invalidated) {
    receive.type = OperationType::kReceiveAndInvalidate;
    receive.invalidated = token;
  } else {
    receive.status = NtStatus::kInvalidDeviceRequest;
  }
  std::shared_ptr<QueuePairEngine> peer;
  {
    MutexLock lock(mutex_);
    peer = peer_.lock();
  }
  if (peer != nullptr) {
    peer->EndAwaited(invalidated);
  }
}

void QueuePairEngine::EndAwaited(bool invalidated) {
  {
    MutexLock lock(mutex_);
    EngineRequest* const request = std::exchange(awaited_, nullptr);
    if (request == nullptr || (invalidated && request->stage != Stage::kUnanswered)) {
      return;  // The card's result ends it.
    }
    End(*request, invalidated ? NtStatus::kSuccess : NtStatus::kRemoteResources, /*at_peer=*/false);
  }
  Run();
}

void QueuePairEngine::MarkResumed(EngineRequest& request) {
  reading_ -= request.stage == Stage::kStarted && request.IsRead() ? 1 : 0;
  request.stage = Stage::kResumed;
  ++resumed_;
}

// A request whose Begin has not returned may be resumed too.
void QueuePairEngine::Resume(uint64_t serial) {
  {
    MutexLock lock(mutex_);
    EngineRequest* const request = sends_.Find(serial);
    if (request == nullptr || (request->stage != Stage::kStarted && request->stage != Stage::kRunning)) {
      return;
    }
    MarkResumed(*request);
  }
  Run();
}

void QueuePairEngine::FinishReads() {
  {
    MutexLock lock(mutex_);
    for (size_t index = 0; index < sends_.begun(); ++index) {
      if (sends_[index].stage == Stage::kStarted) {
        MarkResumed(sends_[index]);
      }
    }
  }
  Run();
  // Another thread may be the runner. It sees the changes above before it stops, so waiting for one runner is enough.
  MutexLock lock(mutex_);
  for (const uint64_t runs = runs_; running_ && runs_ == runs;) {
    changed_.Wait(mutex_);
  }
}

void QueuePairEngine::Abandon() {
  {
    MutexLock lock(mutex_);
    abandoned_ = true;
    for (size_t index = 0; index < sends_.begun(); ++index) {
      if (sends_[index].stage != Stage::kRunning) {
        End(sends_[index], NtStatus::kCancelled, /*at_peer=*/false);
      }
    }
    for (size_t index = 0; index < receives_.size(); ++index) {
      if (receives_[index].stage != Stage::kRunning) {
        End(receives_[index], NtStatus::kCancelled, /*at_peer=*/false);
      }
    }
  }
  Run();
}

bool QueuePairEngine::AbandonIfLate() {
  {
    MutexLock lock(mutex_);
    if (!give_up_at_.has_value() || std::chrono::steady_clock::now() < *give_up_at_) {
      return false;
    }
    give_up_at_.reset();
  }
  Abandon();
  return true;
}

// --- receives ---

bool QueuePairEngine::EnterPeer(const QueuePairEngine& visitor) {
  MutexLock lock(mutex_);
  const bool admitted = state_ == QueuePairState::kReadyToSend && peer_address_ == visitor.address();
  busy_ += admitted ? 1 : 0;
  return admitted;
}

EngineRequest* QueuePairEngine::TakeReceive() {
  MutexLock lock(mutex_);
  if (receives_.begun() == receives_.size() || receives_[receives_.begun()].stage == Stage::kDone) {
    sender_waits_ = true;
    return nullptr;
  }
  EngineRequest& receive = receives_.Begin();
  receive.stage = Stage::kRunning;
  return &receive;
}

EngineRequest* QueuePairEngine::FindReceive(uint64_t serial) {
  MutexLock lock(mutex_);
  EngineRequest* const receive = receives_.Find(serial);
  if (receive == nullptr || receive->stage == Stage::kDone) {
    return nullptr;
  }
  receive->stage = Stage::kRunning;
  return receive;
}

void QueuePairEngine::ReceiveEnded(uint64_t serial, const Completion& result) {
  {
    MutexLock lock(mutex_);
    EngineRequest* const receive = receives_.Find(serial);
    if (receive == nullptr || receive->stage == Stage::kDone) {
      return;  // Abandoned meanwhile.
    }
    receive->stage = Stage::kDone;
    receive->result = result;
  }
  ReportReceives();
}

// Reports receives that are done, from the front of the queue. One thread does so at a time; other threads leave theirs
// to it.
void QueuePairEngine::ReportReceives() {
  std::unique_ptr<EngineRequest> receive;
  while (true) {
    {
      MutexLock lock(mutex_);
      if (receive != nullptr) {
        spares_.push_back(std::move(receive));
        reporting_receives_ = false;
        changed_.NotifyAll();
      }
      if (reporting_receives_ || !receives_.FrontIsDone()) {
        return;
      }
      reporting_receives_ = true;
      receive = receives_.PopFront();
    }
    receive->Clear();  // Release first: the listener may reuse the memory.
    listener_.OnCompletion(WorkQueue::kReceive, receive->result);
  }
}

}  // namespace rnicd::provider
