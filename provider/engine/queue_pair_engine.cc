// The owner's half of a queue pair: connecting, posting, ending; and what its peer in the same process calls.

#include "provider/engine/queue_pair_engine.h"

#include <utility>

#include "base/status.h"
#include "provider/api/operation_type_of.h"

namespace rnicd::provider {

QueuePairEngine::QueuePairEngine(std::unique_ptr<EngineCard> card, Options options, EngineFabric& fabric,
                                 QueuePairListener& listener)
    : card_(std::move(card)), options_(std::move(options)), fabric_(fabric), listener_(listener) {
  card_->engine_ = this;
}

QueuePairState QueuePairEngine::state() const {
  MutexLock lock(mutex_);
  return state_;
}

// --- connecting ---

absl::Status QueuePairEngine::BeginConnecting() {
  MutexLock lock(mutex_);
  if (state_ != QueuePairState::kInit || connecting_) {
    return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
  }
  connecting_ = true;
  return absl::OkStatus();
}

absl::Status QueuePairEngine::Connect(std::string_view peer_address) {
  RNICD_RETURN_IF_ERROR(BeginConnecting());
  const absl::StatusOr<EnginePeer> peer = card_->Connect(peer_address);
  {
    MutexLock lock(mutex_);
    connecting_ = false;
    changed_.NotifyAll();
    if (state_ != QueuePairState::kInit) {
      return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");  // Flushed meanwhile.
    }
    RNICD_RETURN_IF_ERROR(peer.status());
    state_ = QueuePairState::kReadyToSend;
    peer_address_ = peer->address;
    peer_ = peer->engine;
    peer_is_local_ = peer->engine != nullptr;
    awaiting_peer_ = peer_is_local_;
  }
  NotifyEarlyVisitors();
  if (peer->engine != nullptr) {
    CheckPeerReadiness(*peer->engine);
  }
  Run();
  return absl::OkStatus();
}

// The visitors' requests may have waited for Connect. Those of visitors that are not the peer fail.
void QueuePairEngine::NotifyEarlyVisitors() {
  std::map<std::string, std::weak_ptr<QueuePairEngine>> early_visitors;
  {
    MutexLock lock(mutex_);
    early_visitors.swap(early_visitors_);
  }
  for (const auto& [address, weak] : early_visitors) {
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
  if (state_ == QueuePairState::kInit) {
    early_visitors_[visitor->address()] = visitor;
  }
  return state_;
}

void QueuePairEngine::OnPeerReady(const std::string& peer_address) {
  {
    MutexLock lock(mutex_);
    if (peer_address_ != peer_address) {
      return;
    }
    awaiting_peer_ = false;
  }
  Run();
}

// --- posting ---

absl::Status QueuePairEngine::CheckRoom(bool receive) const {
  if (shut_) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED);
  }
  if (receive) {
    return receives_.size() < options_.limits.receive_depth ? absl::OkStatus() : MakeError(ErrorReason::QUEUE_FULL);
  }
  if (state_ != QueuePairState::kReadyToSend || disconnecting_) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED);
  }
  return sends_.size() < options_.limits.initiator_depth ? absl::OkStatus() : MakeError(ErrorReason::QUEUE_FULL);
}

std::unique_ptr<EngineRequest> QueuePairEngine::TakeSpare() {
  if (spares_.empty()) {
    return nullptr;
  }
  std::unique_ptr<EngineRequest> spare = std::move(spares_.back());
  spares_.pop_back();
  return spare;
}

absl::StatusOr<RemoteToken> QueuePairEngine::Enqueue(WorkRequest&& work) {
  const bool receive = std::holds_alternative<ReceiveWork>(work.work);
  std::unique_ptr<EngineRequest> request;
  {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(CheckRoom(receive));
    request = TakeSpare();
  }
  if (request == nullptr) {
    request = std::make_unique<EngineRequest>();
  }
  request->result = {.request_context = work.request_context, .type = TypeOf(work)};
  request->work = std::move(work);
  // Without the lock, because it may register memory. If the request is refused below, its destructor undoes that.
  RNICD_RETURN_IF_ERROR(card_->Prepare(*request));
  if (receive) {
    RNICD_RETURN_IF_ERROR(EnqueueReceive(std::move(request)));
    return RemoteToken{};
  }
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckRoom(receive));
  request->stage = Stage::kQueued;
  request->token = card_->Issue(*request);
  return sends_.Push(std::move(request)).token;
}

// In the error state it is reported by the runner, and takes room until then.
absl::Status QueuePairEngine::EnqueueReceive(std::unique_ptr<EngineRequest> request) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckRoom(/*receive=*/true));
  request->stage = Stage::kQueued;
  EngineRequest& receive = receives_.Push(std::move(request));
  if (state_ == QueuePairState::kError) {
    End(receive, NtStatus::kCancelled, /*at_peer=*/false);
    return absl::OkStatus();
  }
  const absl::Status posted = card_->PostReceive(receive);
  if (!posted.ok()) {
    request = receives_.PopBack();  // Destroyed without the lock.
  }
  return posted;
}

// --- ending ---

void QueuePairEngine::Disconnect() {
  {
    MutexLock lock(mutex_);
    disconnecting_ = true;
  }
  if (options_.rules.finishes_reads) {
    FinishReads();
  }
  Fail();
  Run();
  MutexLock lock(mutex_);
  while (!Quiet()) {
    changed_.Wait(mutex_);
  }
}

void QueuePairEngine::Shutdown() {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = !std::exchange(shut_, true);
  }
  if (first) {
    fabric_.Remove(options_.address);
  }
  Disconnect();
  card_->Close();
}

bool QueuePairEngine::Quiet() const {
  return !connecting_ && !running_ && !reporting_receives_ && busy_ == 0 && sends_.empty() && receives_.empty();
}

void QueuePairEngine::Fail(NtStatus cause) {
  {
    MutexLock lock(mutex_);
    if (state_ == QueuePairState::kError) {
      return;
    }
    state_ = QueuePairState::kError;
    cause_ = cause;
    if (options_.rules.card_timeout.has_value()) {
      give_up_at_ = std::chrono::steady_clock::now() + *options_.rules.card_timeout;
    }
    ++busy_;
  }
  card_->Fail();
  Release();
}

void QueuePairEngine::NotifyPeers() {
  std::map<std::string, std::weak_ptr<QueuePairEngine>> others;
  {
    MutexLock lock(mutex_);
    others.swap(early_visitors_);
    others[peer_address_] = peer_;
  }
  for (const auto& [address, weak] : others) {
    if (const std::shared_ptr<QueuePairEngine> other = weak.lock(); other != nullptr && other.get() != this) {
      other->LoseConnection(options_.address, /*fatal=*/false);
    }
  }
}

void QueuePairEngine::LosePeer() {
  {
    MutexLock lock(mutex_);
    // An endpoint connected to itself gets the failure through its own requests.
    if (peer_lost_ || state_ != QueuePairState::kReadyToSend || peer_address_ == options_.address) {
      return;
    }
    peer_lost_ = true;
    ++busy_;
  }
  listener_.OnPeerDisconnected();
  Release();
}

void QueuePairEngine::LoseConnection(const std::string& peer_address, bool fatal) {
  {
    MutexLock lock(mutex_);
    early_visitors_.erase(peer_address);
    if (state_ != QueuePairState::kReadyToSend || peer_address_ != peer_address) {
      return;
    }
    awaiting_peer_ = false;
  }
  LosePeer();
  {
    // After the report, because a request that this ends fails this side.
    MutexLock lock(mutex_);
    peer_ended_ = true;
    if (awaited_ != nullptr && awaited_->stage == Stage::kUnanswered) {
      End(*awaited_, NtStatus::kIoTimeout, /*at_peer=*/false);
    }
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
    peer = peer_.lock();
  }
  if (peer != nullptr && outcome.at_peer) {
    peer->LoseConnection(options_.address, /*fatal=*/true);
  }
  Fail();
}

bool QueuePairEngine::HoldIfIdle() {
  MutexLock lock(mutex_);
  const bool idle = state_ == QueuePairState::kReadyToSend && !disconnecting_ && !awaiting_peer_ && !peer_lost_ &&
                    sends_.begun() == 0;
  busy_ += idle ? 1 : 0;
  return idle;
}

void QueuePairEngine::Release() {
  MutexLock lock(mutex_);
  --busy_;
  changed_.NotifyAll();
}

}  // namespace rnicd::provider
