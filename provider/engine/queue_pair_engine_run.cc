// The runner: begins requests at the card, and reports them.

#include <utility>

#include "provider/engine/queue_pair_engine.h"

namespace rnicd::provider {

void QueuePairEngine::Run() {
  {
    MutexLock lock(mutex_);
    if (!threads_.BeginRun()) {
      return;
    }
  }
  RunLoop();
}

void QueuePairEngine::RunLoop() {
  Runner runner;
  do {
    while (Step(runner)) {
    }
    if (runner.turn.handed_over) {
      return;
    }
  } while (!StopRunning());
}

// Does the remaining work when no initiator request can make progress. True when there was none, and the runner has
// stopped.
bool QueuePairEngine::StopRunning() {
  std::shared_ptr<QueuePairEngine> sender;
  EngineConnection::Engines peers;
  bool report_receives = false;
  {
    MutexLock lock(mutex_);
    const bool wakes = receives_.WakesSender();
    sender = wakes ? connection_.peer() : nullptr;
    report_receives = receives_.MayReport();
    const bool notifies = !report_receives && connection_.phase() == EngineConnection::Phase::kFailed;
    if (notifies) {
      peers = connection_.TakeAll();
    } else if (!report_receives && sender == nullptr) {
      return threads_.EndRun();
    }
  }
  if (report_receives) {
    ReportReceives();
  }
  NotifyPeers(peers);
  if (sender != nullptr) {
    sender->Run();
  }
  return false;
}

bool QueuePairEngine::Step(Runner& runner) {
  {
    MutexLock lock(mutex_);
    if (runner.spent != nullptr) {
      spares_.push_back(std::move(runner.spent));
    }
    if (runner.begun != nullptr && !sends_.Settle(*std::exchange(runner.begun, nullptr), runner.result)) {
      return false;
    }
    runner.spent = sends_.PopEnded();
    if (runner.spent == nullptr) {
      runner.begun = NextToBegin(runner.turn);
      if (runner.begun == nullptr) {
        return false;
      }
      TakeTogether(runner);
    }
  }
  if (runner.begun != nullptr) {
    Begin(runner);
  } else {
    Report(*runner.spent);
  }
  return true;
}

EngineRequest* QueuePairEngine::NextToBegin(EngineTurn& turn) {
  const EngineConnection::Phase phase = connection_.phase();
  if (!sends_.MayBegin(/*reaches_peer=*/phase != EngineConnection::Phase::kAwaitingPeer)) {
    return nullptr;
  }
  if (options_.rules.bytes_per_turn > 0 && turn.moved >= options_.rules.bytes_per_turn) {
    card_->RunLater([self = shared_from_this()] { self->RunLoop(); });
    turn.handed_over = true;
    return nullptr;
  }
  turn.peer_is_local = connection_.peer_is_local();
  turn.peer_lost = phase == EngineConnection::Phase::kPeerLost && turn.peer_is_local;
  EngineRequest& request = sends_.Begin(turn);
  turn.peer = request.IsLocal() ? nullptr : connection_.peer();
  turn.peer_card = turn.peer != nullptr ? turn.peer->card_.get() : nullptr;
  return &request;
}

void QueuePairEngine::TakeTogether(Runner& runner) {
  if (!runner.begun->IsLocal() || options_.rules.local_requests_together == 0) {
    return;
  }
  for (EngineRequest* next = runner.begun; next != nullptr;) {
    runner.together.push_back(next);
    next = runner.together.size() < options_.rules.local_requests_together ? sends_.BeginTogether() : nullptr;
  }
}

// Leaves the result to the next step, which takes the lock anyway; a failure is recorded here, before the card fails.
void QueuePairEngine::Begin(Runner& runner) {
  if (runner.begun->IsRefused()) {
    runner.result = BeginResult::Done(runner.begun->result.status);
  } else if (runner.together.empty()) {
    runner.result = card_->Begin(*runner.begun, runner.turn);
  } else {
    BeginTogether(runner);
  }
  runner.turn.peer.reset();
  if (!runner.result.IsFailure()) {
    return;
  }
  if (runner.result.outcome.peer_lost) {
    LosePeer();
  }
  {
    MutexLock lock(mutex_);
    sends_.Settle(*std::exchange(runner.begun, nullptr), runner.result);
  }
  FailWith(runner.result.outcome);
}

void QueuePairEngine::BeginTogether(Runner& runner) {
  runner.results.assign(runner.together.size(), BeginResult::Blocked());
  card_->BeginTogether(runner.together, runner.turn, runner.results);
  MutexLock lock(mutex_);
  // Blocked ones first, the youngest first of all, because each goes back to the end of what has not begun.
  while (runner.results.back().kind == BeginResult::Kind::kBlocked && runner.results.size() > 1) {
    sends_.Settle(*runner.together.back(), runner.results.back());
    runner.together.pop_back();
    runner.results.pop_back();
  }
  runner.result = runner.results.back();
  runner.begun = runner.together.back();
  for (size_t index = 0; index + 1 < runner.together.size(); ++index) {
    sends_.Settle(*runner.together[index], runner.results[index]);
  }
  runner.together.clear();
}

void QueuePairEngine::Report(EngineRequest& request) {
  if (!request.IsRefused()) {
    request.result.status = card_->Conclude(request);
  }
  if (request.result.status != NtStatus::kSuccess) {
    {
      MutexLock lock(mutex_);
      sends_.SetReportedFailure();
    }
    Fail();
  }
  const bool silent = request.result.status == NtStatus::kSuccess && request.work.silent_success;
  // First release the resources of the request: the listener may reuse the memory as soon as it gets the completion.
  request.Clear();
  request.result.number = static_cast<uint32_t>(request.serial);
  if (!silent) {
    listener_.OnCompletion(WorkQueue::kInitiator, request.result);
  }
}

// Receives that are done, from the front of the queue. One thread does so at a time; other threads leave theirs to it.
void QueuePairEngine::ReportReceives() {
  std::unique_ptr<EngineRequest> receive;
  while (true) {
    {
      MutexLock lock(mutex_);
      if (receive != nullptr) {
        spares_.push_back(std::move(receive));
        receives_.EndReport();
        threads_.NotifyChange();
      }
      receive = receives_.BeginReport();
      if (receive == nullptr) {
        return;
      }
    }
    receive->Clear();  // Release first: the listener may reuse the memory.
    receive->result.number = static_cast<uint32_t>(receive->serial);
    listener_.OnCompletion(WorkQueue::kReceive, receive->result);
  }
}

}  // namespace rnicd::provider
