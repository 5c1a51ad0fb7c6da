#include "provider/soft/soft_endpoint.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "provider/api/operation_type_of.h"
#include "provider/soft/soft_execute.h"
#include "provider/soft/soft_fast_region.h"
#include "provider/soft/soft_window.h"

namespace rnicd::provider {
namespace {

// Bytes a runner moves before it hands the rest to the engine, so that no caller is blocked for long.
constexpr uint64_t kBytesPerTurn = 1 << 20;
// Bytes charged for each request in addition to its payload: many empty requests also block a caller.
constexpr uint64_t kBytesPerRequest = 256;

}  // namespace

std::shared_ptr<SoftEndpoint> SoftEndpoint::Create(std::shared_ptr<SoftNic> nic, uint64_t domain,
                                                   const QueuePairLimits& limits, QueuePairListener& listener) {
  std::shared_ptr<SoftEndpoint> endpoint(new SoftEndpoint(std::move(nic), domain, limits, listener));
  endpoint->nic_->fabric().Add(endpoint->number_, endpoint);
  return endpoint;
}

SoftEndpoint::SoftEndpoint(std::shared_ptr<SoftNic> nic, uint64_t domain, const QueuePairLimits& limits,
                           QueuePairListener& listener)
    : nic_(std::move(nic)),
      domain_(domain),
      number_(nic_->fabric().NewNumber()),
      limits_(limits),
      listener_(listener) {}

// --- the owner's side ---

QueuePairState SoftEndpoint::state() const {
  MutexLock lock(mutex_);
  return state_;
}

absl::Status SoftEndpoint::Connect(std::string_view peer_address) {
  const std::shared_ptr<SoftEndpoint> peer = nic_->fabric().Find(peer_address);
  std::map<uint64_t, std::weak_ptr<SoftEndpoint>> early_visitors;
  {
    MutexLock lock(mutex_);
    if (state_ != QueuePairState::kInit) {
      return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
    }
    if (peer == nullptr) {
      return MakeError(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address");
    }
    state_ = QueuePairState::kReadyToSend;
    peer_ = peer;
    peer_number_ = peer->number_;
    early_visitors.swap(early_visitors_);
  }
  // The visitors' requests may have waited for Connect. Those of visitors that are not the peer fail.
  for (const auto& [number, weak] : early_visitors) {
    if (const std::shared_ptr<SoftEndpoint> visitor = weak.lock(); visitor != nullptr) {
      visitor->Run();
    }
  }
  if (peer->Expect(shared_from_this())) {
    // Requests posted meanwhile may have seen the peer as not connected.
    Run();
  } else {
    LoseConnection(peer->number_, /*fatal=*/false);
  }
  return absl::OkStatus();
}

RemoteToken SoftEndpoint::IssueToken(const WorkRequest& request) {
  if (const auto* work = std::get_if<FastRegisterWork>(&request.work)) {
    return static_cast<SoftFastRegion&>(*work->region).IssueToken();
  }
  if (const auto* work = std::get_if<BindWork>(&request.work)) {
    return static_cast<SoftWindow&>(*work->window).IssueToken();
  }
  return RemoteToken{};
}

absl::StatusOr<RemoteToken> SoftEndpoint::Enqueue(WorkRequest request) {
  MutexLock lock(mutex_);
  if (shut_) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED);
  }
  if (std::holds_alternative<ReceiveWork>(request.work)) {
    if (receives_.size() >= limits_.receive_depth) {
      return MakeError(ErrorReason::QUEUE_FULL);
    }
    receives_.push_back(std::move(request));
    return RemoteToken{};
  }
  if (state_ != QueuePairState::kReadyToSend || disconnecting_) {
    return MakeError(ErrorReason::QP_NOT_CONNECTED);
  }
  if (slots_.size() >= limits_.initiator_depth) {
    return MakeError(ErrorReason::QUEUE_FULL);
  }
  const RemoteToken token = IssueToken(request);
  slots_.push_back(Slot{.request = std::move(request), .token = token, .serial = next_serial_++});
  return token;
}

void SoftEndpoint::Flush() {
  Fail();
  Run();
}

void SoftEndpoint::Disconnect() {
  FinishTransfers();
  Flush();
  MutexLock lock(mutex_);
  while (!IsQuiet()) {
    changed_.Wait(mutex_);
  }
}

void SoftEndpoint::Shutdown() {
  nic_->fabric().Remove(number_);
  {
    MutexLock lock(mutex_);
    shut_ = true;
  }
  Disconnect();
}

// Completes delayed reads at once: the wire delay is only simulated.
void SoftEndpoint::FinishTransfers() {
  {
    MutexLock lock(mutex_);
    disconnecting_ = true;
    for (Slot& slot : slots_) {
      // Only the runner reads and writes the other stages.
      if (slot.stage == Stage::kReading) {
        slot.stage = Stage::kLanding;
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

void SoftEndpoint::Fail() {
  MutexLock lock(mutex_);
  state_ = QueuePairState::kError;
}

bool SoftEndpoint::IsQuiet() const { return !running_ && visitors_ == 0 && slots_.empty() && receives_.empty(); }

// --- the peer's side ---

SoftEndpoint::Admission SoftEndpoint::Enter(const std::shared_ptr<SoftEndpoint>& visitor) {
  MutexLock lock(mutex_);
  if (state_ == QueuePairState::kInit) {
    return Admission::kNotYet;
  }
  if (state_ == QueuePairState::kError || peer_number_ != visitor->number_) {
    return Admission::kRefused;
  }
  ++visitors_;
  return Admission::kAdmitted;
}

void SoftEndpoint::Leave() {
  bool flush = false;
  {
    MutexLock lock(mutex_);
    --visitors_;
    flush = state_ == QueuePairState::kError;
    changed_.NotifyAll();
  }
  if (flush) {
    Run();
  }
}

std::optional<WorkRequest> SoftEndpoint::TakeReceive() {
  MutexLock lock(mutex_);
  if (receives_.empty()) {
    sender_waits_ = true;
    return std::nullopt;
  }
  WorkRequest receive = std::move(receives_.front());
  receives_.pop_front();
  return receive;
}

bool SoftEndpoint::Expect(const std::shared_ptr<SoftEndpoint>& visitor) {
  MutexLock lock(mutex_);
  if (state_ == QueuePairState::kInit) {
    early_visitors_[visitor->number_] = visitor;
  }
  return state_ != QueuePairState::kError;
}

void SoftEndpoint::LoseConnection(uint64_t peer_number, bool fatal) {
  bool notify = false;
  {
    MutexLock lock(mutex_);
    early_visitors_.erase(peer_number);
    if (state_ != QueuePairState::kReadyToSend || peer_number_ != peer_number) {
      return;
    }
    // An endpoint connected to itself gets the failure through its own requests.
    notify = !peer_lost_ && peer_number != number_;
    peer_lost_ = true;
    if (fatal) {
      state_ = QueuePairState::kError;
    }
    // Counted as a visitor during the callback, so that Shutdown waits for it.
    visitors_ += notify ? 1 : 0;
  }
  if (notify) {
    listener_.OnPeerDisconnected();
    Leave();
  }
  Run();
}

// --- the runner ---

void SoftEndpoint::Run() {
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

void SoftEndpoint::RunLoop() {
  uint64_t moved = 0;
  do {
    while (Step(moved)) {
      if (moved >= kBytesPerTurn) {
        nic_->fabric().engine().Post([self = shared_from_this()] { self->RunLoop(); });
        return;
      }
    }
  } while (!StopRunning());
}

bool SoftEndpoint::StopRunning() {
  std::shared_ptr<SoftEndpoint> sender;
  {
    MutexLock lock(mutex_);
    if (sender_waits_ && !receives_.empty()) {
      sender_waits_ = false;
      sender = peer_.lock();
    }
    if (sender == nullptr) {
      if (run_again_) {
        run_again_ = false;
        return false;
      }
      running_ = false;
      ++runs_;
      changed_.NotifyAll();
      return true;
    }
  }
  sender->Run();
  return false;
}

bool SoftEndpoint::Step(uint64_t& moved) {
  Slot* slot = nullptr;
  std::shared_ptr<SoftEndpoint> peer;
  bool peer_lost = false;
  bool flush = false;
  {
    MutexLock lock(mutex_);
    flush = state_ == QueuePairState::kError;
    slot = flush ? nullptr : NextToBegin();
    peer = peer_.lock();
    peer_lost = peer_lost_;
  }
  if (flush) {
    return FlushQueues();
  }
  if (slot == nullptr) {
    return false;
  }
  const std::shared_ptr<SoftEndpoint> self = shared_from_this();
  const SoftExecution execution{.self = self,
                                .peer = std::move(peer),
                                .peer_lost = peer_lost,
                                .request = slot->request,
                                .token = slot->token,
                                .moved = moved,
                                .refused_by_peer = slot->refused_by_peer};
  const bool starts_slow_read = slot->stage == Stage::kQueued && nic_->read_delay().count() > 0 &&
                                std::holds_alternative<ReadWork>(slot->request.work);
  moved += kBytesPerRequest;
  const std::optional<NtStatus> status = starts_slow_read ? Reach(execution) : Execute(execution);
  if (!status.has_value()) {
    return false;
  }
  if (*status == NtStatus::kIoTimeout && execution.peer != nullptr &&
      execution.peer->state() == QueuePairState::kError) {
    // The peer may not have reported its error yet, and once this side is in error its report would be ignored.
    LoseConnection(execution.peer->number_, /*fatal=*/false);
  }
  if (starts_slow_read && *status == NtStatus::kSuccess) {
    BeginReading(*slot);
  } else {
    Finish(*slot, *status);
  }
  return true;
}

// The first request that may begin: a read that has arrived, or the oldest request that has not begun.
SoftEndpoint::Slot* SoftEndpoint::NextToBegin() {
  uint32_t reading = 0;
  for (Slot& slot : slots_) {
    if (slot.stage == Stage::kLanding) {
      return &slot;
    }
    reading += slot.stage == Stage::kReading ? 1 : 0;
    if (slot.stage == Stage::kQueued) {
      const bool fenced = slot.request.read_fence && reading > 0;
      const bool too_many =
          std::holds_alternative<ReadWork>(slot.request.work) && reading >= nic_->info().max_outbound_read_limit;
      return fenced || too_many || disconnecting_ ? nullptr : &slot;
    }
  }
  return nullptr;
}

void SoftEndpoint::BeginReading(Slot& slot) {
  uint64_t serial = 0;
  {
    MutexLock lock(mutex_);
    slot.stage = Stage::kReading;
    serial = slot.serial;
  }
  nic_->fabric().engine().PostAfter(nic_->read_delay(), [weak = weak_from_this(), serial] {
    if (const std::shared_ptr<SoftEndpoint> self = weak.lock(); self != nullptr) {
      self->Land(serial);
    }
  });
}

void SoftEndpoint::Land(uint64_t serial) {
  {
    MutexLock lock(mutex_);
    const auto slot =
        std::find_if(slots_.begin(), slots_.end(), [serial](const Slot& each) { return each.serial == serial; });
    if (slot == slots_.end() || slot->stage != Stage::kReading) {
      return;  // Flushed meanwhile, or completed early by Disconnect.
    }
    slot->stage = Stage::kLanding;
  }
  Run();
}

// Reports finished requests from the front of the queue, up to the first failure: completions are in posting order, and
// requests behind a failure are flushed even if they were executed while an earlier read was in progress.
void SoftEndpoint::Finish(Slot& slot, NtStatus status) {
  std::deque<Slot> done;
  {
    MutexLock lock(mutex_);
    slot.stage = Stage::kDone;
    slot.status = status;
    if (status != NtStatus::kSuccess) {
      state_ = QueuePairState::kError;
    }
    while (!slots_.empty() && slots_.front().stage == Stage::kDone) {
      done.push_back(std::move(slots_.front()));
      slots_.pop_front();
      if (done.back().status != NtStatus::kSuccess) {
        break;
      }
    }
  }
  for (Slot& each : done) {
    Report(each);
  }
}

void SoftEndpoint::Report(Slot& slot) {
  const bool silent = slot.status == NtStatus::kSuccess && slot.request.silent_success;
  const Completion completion{.request_context = slot.request.request_context,
                              .type = TypeOf(slot.request),
                              .status = slot.status,
                              .at_peer = slot.refused_by_peer};
  // Release what the request holds first: the listener may reuse the memory as soon as it sees the completion.
  slot.request = {};
  if (!silent) {
    listener_.OnCompletion(WorkQueue::kInitiator, completion);
  }
}

bool SoftEndpoint::FlushQueues() {
  std::deque<Slot> slots;
  std::deque<WorkRequest> receives;
  std::map<uint64_t, std::weak_ptr<SoftEndpoint>> others;
  {
    MutexLock lock(mutex_);
    slots.swap(slots_);
    if (visitors_ == 0) {
      receives.swap(receives_);
    }
    if (!notified_peer_) {
      notified_peer_ = true;
      others.swap(early_visitors_);
      others[peer_number_] = peer_;
    }
  }
  for (Slot& slot : slots) {
    slot.status = slot.status == NtStatus::kSuccess ? NtStatus::kCancelled : slot.status;
    Report(slot);
  }
  for (WorkRequest& receive : receives) {
    const Completion completion{
        .request_context = receive.request_context, .type = OperationType::kReceive, .status = NtStatus::kCancelled};
    receive = {};
    listener_.OnCompletion(WorkQueue::kReceive, completion);
  }
  for (const auto& [number, weak] : others) {
    if (const std::shared_ptr<SoftEndpoint> other = weak.lock(); other != nullptr && other.get() != this) {
      other->LoseConnection(number_, /*fatal=*/false);
    }
  }
  return !slots.empty() || !receives.empty();
}

}  // namespace rnicd::provider
