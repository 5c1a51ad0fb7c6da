// The owner's half of a queue pair: connecting, posting, ending; and what its card and its peer in the same process
// call.

#include "provider/engine/queue_pair_engine.h"

#include <utility>

#include "base/status.h"
#include "provider/api/operation_type_of.h"

namespace rnicd::provider {

QueuePairEngine::QueuePairEngine(std::unique_ptr<EngineCard> card, Options options, EngineFabric& fabric,
                                 QueuePairListener& listener)
    : card_(std::move(card)),
      options_(std::move(options)),
      fabric_(fabric),
      listener_(listener),
      sends_(options_.rules, options_.limits.initiator_depth),
      receives_(options_.limits.receive_depth) {
  card_->engine_ = this;
}

QueuePairState QueuePairEngine::state() const {
  MutexLock lock(mutex_);
  return connection_.state();
}

// --- connecting ---

absl::Status QueuePairEngine::Connect(std::string_view peer_address, uint32_t read_limit) {
  {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(connection_.Begin());
    threads_.Hold();
  }
  const absl::StatusOr<EnginePeer> peer = card_->Connect(peer_address);
  RNICD_RETURN_IF_ERROR(EndConnecting(peer, read_limit));
  NotifyEarlyVisitors();
  if (peer->engine != nullptr) {
    CheckPeerReadiness(*peer->engine);
  }
  Run();
  return absl::OkStatus();
}

absl::Status QueuePairEngine::EndConnecting(const absl::StatusOr<EnginePeer>& peer, uint32_t read_limit) {
  MutexLock lock(mutex_);
  threads_.Release();
  RNICD_RETURN_IF_ERROR(connection_.End(peer));
  sends_.Open(read_limit);
  return absl::OkStatus();
}

// The visitors' requests may have waited for Connect. Those of visitors that are not the peer fail.
void QueuePairEngine::NotifyEarlyVisitors() {
  EngineConnection::Engines visitors;
  {
    MutexLock lock(mutex_);
    visitors = connection_.TakeVisitors();
  }
  for (const auto& [address, weak] : visitors) {
    if (const std::shared_ptr<QueuePairEngine> visitor = weak.lock(); visitor != nullptr) {
      visitor->OnPeerReady(options_.address);
    }
  }
}

void QueuePairEngine::CheckPeerReadiness(QueuePairEngine& peer) {
  const QueuePairState state = peer.Expect(shared_from_this());
  if (state == QueuePairState::kReadyToSend) {
    OnPeerReady(peer.address());
  } else if (state == QueuePairState::kError) {
    LoseConnection(peer.address(), /*fatal=*/false);
  }
}

QueuePairState QueuePairEngine::Expect(const std::shared_ptr<QueuePairEngine>& visitor) {
  MutexLock lock(mutex_);
  connection_.AddVisitor(visitor->address(), visitor);
  return connection_.state();
}

void QueuePairEngine::OnPeerReady(const std::string& peer_address) {
  {
    MutexLock lock(mutex_);
    if (!connection_.SetPeerReady(peer_address)) {
      return;
    }
  }
  Run();
}

// --- posting ---

absl::StatusOr<std::unique_ptr<EngineRequest>> QueuePairEngine::TakeSpare(bool receive) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(receive ? receives_.CheckRoom() : sends_.CheckRoom());
  return Spare();
}

std::unique_ptr<EngineRequest> QueuePairEngine::Spare() {
  if (spares_.empty()) {
    return std::make_unique<EngineRequest>();
  }
  std::unique_ptr<EngineRequest> spare = std::move(spares_.back());
  spares_.pop_back();
  return spare;
}

absl::StatusOr<RemoteToken> QueuePairEngine::Enqueue(WorkRequest&& work) {
  const bool receive = std::holds_alternative<ReceiveWork>(work.work);
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<EngineRequest> request, TakeSpare(receive));
  request->result = {.request_context = work.request_context, .type = TypeOf(work)};
  request->work = std::move(work);
  // Without the lock, because it may register memory. If the request is refused below, its destructor undoes that.
  RNICD_RETURN_IF_ERROR(card_->Prepare(*request));
  if (receive) {
    RNICD_RETURN_IF_ERROR(EnqueueReceive(std::move(request)));
    return RemoteToken{};
  }
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(sends_.CheckRoom());
  request->token = card_->Issue(*request);
  return sends_.Push(std::move(request)).token;
}

void QueuePairEngine::EnqueueRefused(const Completion& refusal) {
  NtStatus cause = NtStatus::kCancelled;
  {
    MutexLock lock(mutex_);
    std::unique_ptr<EngineRequest> request = Spare();
    request->result = refusal;
    if (refusal.type == OperationType::kReceive) {
      if (!receives_.PushRefused(std::move(request))) {
        return;
      }
    } else if (sends_.PushRefused(std::move(request))) {
      cause = refusal.status;
    } else {
      return;
    }
  }
  Fail(cause);
}

// In the error state it is reported by the runner, and takes room until then.
absl::Status QueuePairEngine::EnqueueReceive(std::unique_ptr<EngineRequest> request) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(receives_.CheckRoom());
  EngineRequest& receive = receives_.Push(std::move(request));
  const absl::Status posted =
      receive.stage == EngineRequest::Stage::kQueued ? card_->PostReceive(receive) : absl::OkStatus();
  if (!posted.ok()) {
    request = receives_.UndoPush();  // Destroyed without the lock.
  }
  return posted;
}

// --- results ---

bool QueuePairEngine::Ended(uint64_t serial, CardOutcome outcome) {
  // Before the request ends: the report is ignored once this side is in error.
  if (outcome.peer_lost) {
    LosePeer();
  }
  {
    MutexLock lock(mutex_);
    if (!sends_.End(serial, outcome)) {
      return false;
    }
  }
  if (outcome.status != NtStatus::kSuccess) {
    FailWith(outcome);
  }
  return true;
}

void QueuePairEngine::Resume(uint64_t serial) {
  {
    MutexLock lock(mutex_);
    if (!sends_.Resume(serial)) {
      return;
    }
  }
  Run();
}

void QueuePairEngine::Abandon() {
  {
    MutexLock lock(mutex_);
    sends_.Abandon();
    receives_.Abandon();
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
    peer = connection_.peer();
  }
  if (peer == nullptr) {
    return;
  }
  {
    MutexLock lock(peer->mutex_);
    if (!peer->sends_.Answer(invalidated)) {
      return;
    }
  }
  peer->Run();
}

bool QueuePairEngine::EnterPeer(std::string_view visitor) {
  MutexLock lock(mutex_);
  return threads_.HoldIf(connection_.IsTo(visitor));
}

EngineRequest* QueuePairEngine::TakeReceive() {
  MutexLock lock(mutex_);
  return receives_.TakeOldest();
}

void QueuePairEngine::ReceiveEnded(uint64_t serial, const Completion& result) {
  {
    MutexLock lock(mutex_);
    if (!receives_.End(serial, result)) {
      return;
    }
  }
  ReportReceives();
}

void QueuePairEngine::ReceiveFilled(uint64_t serial, absl::FunctionRef<Completion(const EngineRequest&)> read) {
  const EngineRequest* receive = nullptr;
  {
    MutexLock lock(mutex_);
    receive = receives_.Take(serial);
  }
  if (receive == nullptr) {
    return;  // Abandoned before.
  }
  const Completion result = read(*receive);
  // Before the report, so that the state is known with the failure.
  if (result.status != NtStatus::kSuccess) {
    LosePeer();
    Fail();
  }
  ReceiveEnded(serial, result);
}

bool QueuePairEngine::HoldIfIdle() {
  MutexLock lock(mutex_);
  return threads_.HoldIf(connection_.phase() == EngineConnection::Phase::kConnected && sends_.idle());
}

void QueuePairEngine::Release() {
  MutexLock lock(mutex_);
  threads_.Release();
}

// --- ending ---

void QueuePairEngine::Disconnect() {
  {
    MutexLock lock(mutex_);
    sends_.Drain();
  }
  if (options_.rules.finishes_reads) {
    FinishReads();
  }
  Fail();
  Run();
  MutexLock lock(mutex_);
  while (!threads_.idle() || !sends_.empty() || !receives_.idle()) {
    threads_.AwaitChange(mutex_);
  }
}

void QueuePairEngine::FinishReads() {
  {
    MutexLock lock(mutex_);
    sends_.ResumeAll();
  }
  Run();
  // Another thread may be the runner.
  MutexLock lock(mutex_);
  threads_.AwaitRunner(mutex_);
}

void QueuePairEngine::Shutdown() {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = receives_.Shut();
  }
  if (first) {
    fabric_.Remove(options_.address);
  }
  Disconnect();
  card_->Close();
}

void QueuePairEngine::Fail(NtStatus cause) {
  {
    MutexLock lock(mutex_);
    if (!connection_.Fail()) {
      return;
    }
    sends_.Fail(cause);
    receives_.Fail();
    if (options_.rules.card_timeout.has_value()) {
      give_up_at_ = std::chrono::steady_clock::now() + *options_.rules.card_timeout;
    }
    threads_.Hold();
  }
  card_->Fail();
  Release();
}

void QueuePairEngine::LosePeer() {
  {
    MutexLock lock(mutex_);
    if (!connection_.LosePeer(options_.address)) {
      return;
    }
    threads_.Hold();
  }
  listener_.OnPeerDisconnected();
  Release();
}

void QueuePairEngine::LoseConnection(const std::string& peer_address, bool fatal) {
  {
    MutexLock lock(mutex_);
    connection_.RemoveVisitor(peer_address);
    if (!connection_.IsTo(peer_address)) {
      return;
    }
  }
  LosePeer();
  {
    // After the report, because a request that this ends fails this side.
    MutexLock lock(mutex_);
    sends_.EndAnswers();
  }
  if (fatal) {
    Fail();
  }
  Run();
}

void QueuePairEngine::FailWith(const CardOutcome& outcome) {
  std::shared_ptr<QueuePairEngine> peer;
  {
    MutexLock lock(mutex_);
    peer = connection_.peer();
  }
  if (peer != nullptr && outcome.at_peer) {
    peer->LoseConnection(options_.address, /*fatal=*/true);
  }
  Fail();
}

void QueuePairEngine::NotifyPeers(const EngineConnection::Engines& peers) {
  for (const auto& [address, weak] : peers) {
    if (const std::shared_ptr<QueuePairEngine> other = weak.lock(); other != nullptr && other.get() != this) {
      other->LoseConnection(options_.address, /*fatal=*/false);
    }
  }
}

}  // namespace rnicd::provider
