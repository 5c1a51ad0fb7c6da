// The runner: decides which request may begin, and reports requests in queue order.

#include <utility>

#include "provider/engine/queue_pair_engine.h"

namespace rnicd::provider {
namespace {

bool InvalidatesLocally(const EngineRequest& request) {
  const auto* read = std::get_if<ReadWork>(&request.work.work);
  return read != nullptr && read->local_invalidate;
}

}  // namespace

// --- the runner ---

void QueuePairEngine::Run() {
  {
    MutexLock lock(mutex_);
    if (running_) {
      run_again_ = true;
      return;
    }
    running_ = true;
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

// Does what is left when no initiator request can make progress. True when nothing was, and the runner has stopped.
bool QueuePairEngine::StopRunning() {
  std::shared_ptr<QueuePairEngine> sender;
  bool report_receives = false;
  bool notify_peers = false;
  {
    MutexLock lock(mutex_);
    if (sender_waits_ && state_ != QueuePairState::kError && receives_.begun() < receives_.size()) {
      sender_waits_ = false;
      sender = peer_.lock();
    }
    report_receives = !reporting_receives_ && receives_.FrontIsDone();
    notify_peers = !report_receives && state_ == QueuePairState::kError && !notified_peers_;
    notified_peers_ = notified_peers_ || notify_peers;
    if (sender == nullptr && !report_receives && !notify_peers) {
      running_ = run_again_;
      runs_ += run_again_ ? 0 : 1;
      changed_.NotifyAll();
      return !std::exchange(run_again_, false);
    }
  }
  if (report_receives) {
    ReportReceives();
  }
  if (notify_peers) {
    NotifyPeers();
  }
  if (sender != nullptr) {
    sender->Run();
  }
  return false;
}

bool QueuePairEngine::Step(Runner& runner) {
  {
    MutexLock lock(mutex_);
    if (runner.spent != nullptr) {
      spares_.push_back(std::exchange(runner.spent, nullptr));
    }
    if (runner.begun != nullptr && !Settle(*std::exchange(runner.begun, nullptr), runner.result)) {
      return false;
    }
    CancelFront();
    if (sends_.FrontIsDone()) {
      runner.spent = sends_.PopFront();
      NtStatus& status = runner.spent->result.status;
      if (reported_failure_ && status == NtStatus::kSuccess) {
        status = NtStatus::kCancelled;
      } else if (!reported_failure_ && status == NtStatus::kCancelled) {
        status = cause_;
      }
    } else {
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

// In the error state nothing begins: requests that would are cancelled when they are the oldest.
void QueuePairEngine::CancelFront() {
  if (state_ == QueuePairState::kError && !sends_.empty() &&
      (sends_.front().stage == Stage::kQueued || sends_.front().stage == Stage::kResumed)) {
    End(sends_.front(), NtStatus::kCancelled, /*at_peer=*/false);
  }
}

EngineRequest* QueuePairEngine::NextToBegin(EngineTurn& turn) {
  if (state_ == QueuePairState::kError) {
    return nullptr;
  }
  const bool waits = sends_.begun() == sends_.size() || !MayBegin(sends_[sends_.begun()]);
  if (resumed_ == 0 && waits) {
    return nullptr;
  }
  if (options_.rules.bytes_per_turn > 0 && turn.moved >= options_.rules.bytes_per_turn) {
    card_->RunLater([self = shared_from_this()] { self->RunLoop(); });
    turn.handed_over = true;
    return nullptr;
  }
  turn.is_first = sends_.begun() == 0;
  turn.resumed = resumed_ > 0;
  turn.peer_is_local = peer_is_local_;
  turn.peer_lost = peer_lost_ && peer_is_local_;
  EngineRequest* const request = turn.resumed ? NextResumed() : &sends_.Begin();
  turn.peer = request->IsLocal() ? nullptr : peer_.lock();
  turn.peer_card = turn.peer != nullptr ? turn.peer->card_.get() : nullptr;
  request->stage = Stage::kRunning;
  request->holds_back = AwaitsPeer(*request);
  awaited_ = request->holds_back ? request : awaited_;
  return request;
}

bool QueuePairEngine::AwaitsPeer(const EngineRequest& request) const {
  const auto* const send = std::get_if<SendWork>(&request.work.work);
  return options_.rules.awaits_invalidations && send != nullptr && send->invalidate.has_value() && peer_is_local_ &&
         !peer_ended_;
}

EngineRequest* QueuePairEngine::NextResumed() {
  size_t index = 0;
  while (sends_[index].stage != Stage::kResumed) {
    ++index;
  }
  --resumed_;
  return &sends_[index];
}

bool QueuePairEngine::MayBegin(const EngineRequest& request) const {
  if (disconnecting_) {
    return false;
  }
  const EngineRules& rules = options_.rules;
  if (sends_.begun() > 0) {
    const EngineRequest& last = sends_[sends_.begun() - 1];
    if ((last.holds_back && last.stage != Stage::kDone) ||
        (rules.local_requests_alone && (last.IsLocal() || InvalidatesLocally(last)))) {
      return false;
    }
  }
  if (rules.read_limit > 0 &&
      ((request.work.read_fence && reading_ > 0) || (request.IsRead() && reading_ >= rules.read_limit))) {
    return false;
  }
  return request.IsLocal() ? !rules.local_requests_alone || sends_.begun() == 0 : !awaiting_peer_;
}

// Leaves the result to the next step, which takes the lock anyway; a failure is recorded here, before the card fails.
void QueuePairEngine::Begin(Runner& runner) {
  if (runner.together.empty()) {
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
    Settle(*std::exchange(runner.begun, nullptr), runner.result);
  }
  FailWith(runner.result.outcome);
}

void QueuePairEngine::TakeTogether(Runner& runner) {
  if (!runner.begun->IsLocal() || options_.rules.local_requests_together == 0) {
    return;
  }
  runner.together.push_back(runner.begun);
  while (runner.together.size() < options_.rules.local_requests_together && sends_.begun() < sends_.size() &&
         sends_[sends_.begun()].IsLocal()) {
    runner.together.push_back(&sends_.Begin());
    runner.together.back()->stage = Stage::kRunning;
  }
}

void QueuePairEngine::BeginTogether(Runner& runner) {
  runner.results.assign(runner.together.size(), BeginResult::Blocked());
  card_->BeginTogether(runner.together, runner.turn, runner.results);
  {
    MutexLock lock(mutex_);
    // Blocked ones first, the youngest first of all, because each goes back to the end of what has not begun.
    while (runner.results.back().kind == BeginResult::Kind::kBlocked && runner.results.size() > 1) {
      Settle(*runner.together.back(), runner.results.back());
      runner.together.pop_back();
      runner.results.pop_back();
    }
    runner.result = runner.results.back();
    runner.begun = runner.together.back();
    for (size_t index = 0; index + 1 < runner.together.size(); ++index) {
      Settle(*runner.together[index], runner.results[index]);
    }
  }
  runner.together.clear();
}

bool QueuePairEngine::Settle(EngineRequest& request, const BeginResult& result) {
  switch (result.kind) {
    case BeginResult::Kind::kBlocked:
      resumed_ -= request.stage == Stage::kResumed ? 1 : 0;  // Resumed too late, while it was running.
      request.stage = Stage::kQueued;
      awaited_ = awaited_ == &request ? nullptr : awaited_;
      sends_.UndoBegin();
      return state_ == QueuePairState::kError;  // It is cancelled then.
    case BeginResult::Kind::kStarted:
      request.holds_back = request.holds_back || result.holds_back;
      if (request.stage == Stage::kRunning) {
        request.stage = Stage::kStarted;
        reading_ += request.IsRead() ? 1 : 0;
      }
      if (abandoned_) {
        End(request, NtStatus::kCancelled, /*at_peer=*/false);
      }
      return true;
    case BeginResult::Kind::kDone:
      End(request, result.outcome.status, result.outcome.at_peer);
  }
  return true;
}

void QueuePairEngine::Report(EngineRequest& request) {
  request.result.status = card_->Conclude(request);
  if (request.result.status != NtStatus::kSuccess) {
    {
      MutexLock lock(mutex_);
      reported_failure_ = true;
    }
    Fail();
  }
  const bool silent = request.result.status == NtStatus::kSuccess && request.work.silent_success;
  // Release what the request holds first: the listener may reuse the memory as soon as it sees the completion.
  request.Clear();
  if (!silent) {
    listener_.OnCompletion(WorkQueue::kInitiator, request.result);
  }
}

}  // namespace rnicd::provider
