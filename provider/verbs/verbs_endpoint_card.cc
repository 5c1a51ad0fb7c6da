// What the loop brings from the card: completions, and whether card and peer still live.

#include <arpa/inet.h>

#include <array>
#include <utility>

#include "provider/verbs/verbs_endpoint.h"
#include "provider/verbs/verbs_status.h"

namespace rnicd::provider {
namespace {

constexpr int kCompletionsAtATime = 32;

}  // namespace

void VerbsEndpoint::OnCqEvent() {
  std::array<ibv_wc, kCompletionsAtATime> completions;
  bool armed = false;
  while (true) {
    int count = 0;
    {
      MutexLock lock(queues_mutex_);
      if (cq_ == nullptr) {
        return;
      }
      // Before the last look, so that nothing comes unnoticed between the two.
      if (!std::exchange(armed, true)) {
        api().ArmCq(cq_);
      }
      count = api().PollCq(cq_, kCompletionsAtATime, completions.data());
    }
    for (int index = 0; index < count; ++index) {
      const ibv_wc& completion = completions[static_cast<size_t>(index)];
      if (completion.wr_id == kProbeId) {
        OnProbeCompletion(completion);
      } else if ((completion.wr_id & kReceiveBit) != 0) {
        OnReceiveCompletion(completion);
      } else {
        OnSendCompletion(completion);
      }
    }
    if (count <= 0) {
      break;
    }
  }
  Run();
}

// Some cards say of a request that it is at fault when it is the port that is down. What a request may do locally was
// judged before the card got it.
bool VerbsEndpoint::LinkIsAtFault(ibv_wc_status status) {
  VerbsContext& context = domain_->context();
  return status == IBV_WC_LOC_QP_OP_ERR && !context.device().PortIsActive(node(), context.raw());
}

void VerbsEndpoint::OnSendCompletion(const ibv_wc& completion) {
  const bool success = completion.status == IBV_WC_SUCCESS;
  const bool link_is_down = LinkIsAtFault(completion.status);
  std::shared_ptr<VerbsEndpoint> peer;
  {
    MutexLock lock(mutex_);
    const uint64_t first = slots_.empty() ? 0 : slots_.front().serial;
    if (slots_.empty() || completion.wr_id < first || completion.wr_id - first >= slots_.size()) {
      return;  // Given up before it came.
    }
    Slot& slot = slots_[completion.wr_id - first];
    if (slot.stage != Stage::kPosted) {
      return;  // The peer's verdict came first.
    }
    const bool is_bind = slot.prepared.grant != nullptr;
    slot.card_is_done = true;
    slot.stage = success && slot.awaits_verdict ? Stage::kPosted : Stage::kDone;
    slot.status = link_is_down ? NtStatus::kIoTimeout
                               : CompletionStatus(completion.status, is_bind ? WorkKind::kBind : WorkKind::kInitiator);
    peer_seen_ = peer_seen_ || (success && !is_bind);
    peer = peer_.lock();
  }
  if (success) {
    return;
  }
  if (IsRemoteRefusal(completion.status) && peer != nullptr) {
    peer->LoseConnection(address_text_, /*fatal=*/true);
  }
  // A flush that nobody here asked for: the card failed this side for what the peer did.
  if (link_is_down || IsPeerSilent(completion.status) || completion.status == IBV_WC_WR_FLUSH_ERR) {
    LosePeer();
  }
  Fail();
}

Completion VerbsEndpoint::ReadReceive(const ibv_wc& completion, const PreparedRequest& prepared) {
  Completion result{.request_context = prepared.request.request_context,
                    .type = OperationType::kReceive,
                    .status = CompletionStatus(completion.status, WorkKind::kReceive)};
  if (result.status != NtStatus::kSuccess) {
    if (result.status != NtStatus::kCancelled && !MayReceive(*domain_, prepared)) {
      result.status = NtStatus::kAccessViolation;
    }
    return result;
  }
  bool peer_speaks = false;
  std::shared_ptr<VerbsEndpoint> peer;
  {
    MutexLock lock(mutex_);
    peer_speaks = peer_speaks_;
    peer_seen_ = true;
    peer = peer_.lock();
  }
  result.bytes = completion.byte_len;
  // A card does not tell whether the sender wanted the receiver to be woken. A daemon says it in immediate data; of any
  // other peer every message wakes.
  result.solicited = !peer_speaks;
  if (!peer_speaks && (completion.wc_flags & IBV_WC_WITH_INV) != 0) {
    // The card has done it; what is left is to know it here.
    domain_->InvalidateRemote(completion.invalidated_rkey);
    result.type = OperationType::kReceiveAndInvalidate;
    result.invalidated = RemoteToken{completion.invalidated_rkey};
  }
  if (!peer_speaks || (completion.wc_flags & IBV_WC_WITH_IMM) == 0) {
    return result;
  }
  result.solicited = true;
  const uint32_t token = ntohl(completion.imm_data);
  if (token == kImmediateSolicit) {
    return result;
  }
  const bool invalidated = domain_->InvalidateRemote(token);
  if (invalidated) {
    result.type = OperationType::kReceiveAndInvalidate;
    result.invalidated = RemoteToken{token};
  } else {
    result.status = NtStatus::kInvalidDeviceRequest;
  }
  if (peer != nullptr) {
    peer->OnVerdict(invalidated);
  }
  return result;
}

void VerbsEndpoint::OnReceiveCompletion(const ibv_wc& completion) {
  const uint64_t number = completion.wr_id & ~kReceiveBit;
  const PreparedRequest* prepared = nullptr;
  {
    MutexLock lock(mutex_);
    if (number < first_receive_ || number - first_receive_ >= receives_.size() ||
        receives_[number - first_receive_].result.has_value()) {
      return;  // Given up before it came.
    }
    // Stays where it is until it has a result, and that comes from this thread alone.
    prepared = &receives_[number - first_receive_].prepared;
    ++busy_;
  }
  const Completion result = ReadReceive(completion, *prepared);
  {
    MutexLock lock(mutex_);
    receives_[number - first_receive_].result = result;
  }
  ReportReceives();
  if (result.status != NtStatus::kSuccess) {
    LosePeer();
    Fail();
  }
  EndBusy();
}

Completion VerbsEndpoint::CancelledReceive(const PreparedRequest& prepared) {
  return {.request_context = prepared.request.request_context,
          .type = OperationType::kReceive,
          .status = NtStatus::kCancelled};
}

// Whoever completes a receive reports it, with all that are complete behind it, unless another is at it already.
void VerbsEndpoint::ReportReceives() {
  while (true) {
    std::optional<Completion> result;
    PreparedRequest prepared;
    {
      MutexLock lock(mutex_);
      if (reporting_receives_ || receives_.empty() || !receives_.front().result.has_value()) {
        return;
      }
      reporting_receives_ = true;
      result = receives_.front().result;
      prepared = std::move(receives_.front().prepared);
      receives_.pop_front();
      ++first_receive_;
    }
    prepared = {};  // Who hears of the end finds let go what the request held.
    listener_.OnCompletion(WorkQueue::kReceive, *result);
    MutexLock lock(mutex_);
    reporting_receives_ = false;
    changed_.NotifyAll();
  }
}

void VerbsEndpoint::OnProbeCompletion(const ibv_wc& completion) {
  {
    MutexLock lock(mutex_);
    peer_seen_ = peer_seen_ || completion.status == IBV_WC_SUCCESS;
    ++busy_;
    probing_ = false;
  }
  if (completion.status != IBV_WC_SUCCESS) {
    LosePeer();
    Fail();
  }
  EndBusy();
}

void VerbsEndpoint::OnTick() {
  bool give_up = false;
  bool look = false;
  const Instant now = std::chrono::steady_clock::now();
  {
    MutexLock lock(mutex_);
    give_up = give_up_at_.has_value() && now >= *give_up_at_ && !IsQuiet();
    look = state_ == QueuePairState::kReadyToSend && now - last_probe_ >= node().options.probe_interval;
    last_probe_ = look ? now : last_probe_;
  }
  if (give_up) {
    Abandon();
  } else if (look) {
    Probe();
  }
}

// A card does not say that it failed a queue pair for what its peer did, nor that an idle peer is gone.
void VerbsEndpoint::Probe() {
  if (CardStillWorks() && SendProbe()) {
    return;
  }
  LosePeer();
  Fail();
  Run();
}

bool VerbsEndpoint::CardStillWorks() {
  MutexLock lock(queues_mutex_);
  ibv_qp_state state = IBV_QPS_UNKNOWN;
  return qp_ == nullptr || (api().QueryQpState(qp_, state) == 0 && state != IBV_QPS_ERR);
}

// A write of nothing: the peer's card answers, and looks at no key. Only where silence would mean something.
bool VerbsEndpoint::SendProbe() {
  MutexLock lock(mutex_);
  const bool peer_is_up = peer_is_ours_ ? !awaiting_peer_ : peer_seen_;
  if (state_ != QueuePairState::kReadyToSend || disconnecting_ || !peer_is_up || peer_lost_ || probing_ ||
      begun_ != 0) {
    return true;
  }
  ibv_send_wr request = {};
  request.wr_id = kProbeId;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  probing_ = api().PostSend(qp_, request) == 0;
  return probing_;
}

void VerbsEndpoint::OnCardEvent() {
  if (state() == QueuePairState::kReadyToSend && !CardStillWorks()) {
    LosePeer();
    Fail();
    Run();
  }
}

void VerbsEndpoint::OnDeviceGone() {
  LosePeer();
  Fail();
  Abandon();
}

// Nothing comes back from the card any more: all it has counts as cancelled.
void VerbsEndpoint::Abandon() {
  {
    MutexLock lock(mutex_);
    for (Slot& slot : slots_) {
      if (slot.stage == Stage::kPosted) {
        slot.stage = Stage::kDone;
        slot.status = NtStatus::kCancelled;
      }
    }
    for (Receive& receive : receives_) {
      if (!receive.result.has_value()) {
        receive.result = CancelledReceive(receive.prepared);
      }
    }
    probing_ = false;
    changed_.NotifyAll();
  }
  ReportReceives();
  Run();
}

}  // namespace rnicd::provider
