// Events from the card, on the loop's thread: completions, and detection of a removed card or a dead peer.

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
      // Arm before the last poll, so that no completion is missed between the two.
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

// Some cards report an error of the request when the port is down. The request's local access was checked before it was
// posted, so check the port.
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
      return;  // Abandoned before the completion arrived.
    }
    Slot& slot = slots_[completion.wr_id - first];
    if (slot.stage != Stage::kPosted) {
      return;  // The peer's result came first.
    }
    const bool is_bind = slot.prepared.grant != nullptr;
    slot.card_is_done = true;
    slot.stage = success && slot.awaits_invalidate_result ? Stage::kPosted : Stage::kDone;
    slot.status = link_is_down ? NtStatus::kIoTimeout
                               : CompletionStatus(completion.status, is_bind ? WorkKind::kBind : WorkKind::kInitiator);
    slot.at_peer = IsRemoteRefusal(completion.status);
    peer_seen_ = peer_seen_ || (success && !is_bind);
    peer = peer_.lock();
  }
  if (success) {
    return;
  }
  if (IsRemoteRefusal(completion.status) && peer != nullptr) {
    peer->LoseConnection(address_text_, /*fatal=*/true);
  }
  // A flush that this side did not request: the card failed this side because of the peer.
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
  bool peer_is_rnicd = false;
  std::shared_ptr<VerbsEndpoint> peer;
  {
    MutexLock lock(mutex_);
    peer_is_rnicd = peer_is_rnicd_;
    peer_seen_ = true;
    peer = peer_.lock();
  }
  result.bytes = completion.byte_len;
  // A card does not report whether the sender requested a solicited event. A daemon sends that in immediate data; every
  // message of any other peer counts as solicited.
  result.solicited = !peer_is_rnicd;
  if (!peer_is_rnicd && (completion.wc_flags & IBV_WC_WITH_INV) != 0) {
    // The card has invalidated the token; update the daemon's state.
    domain_->InvalidateRemote(completion.invalidated_rkey, std::nullopt);
    result.type = OperationType::kReceiveAndInvalidate;
    result.invalidated = RemoteToken{completion.invalidated_rkey};
  }
  if (!peer_is_rnicd || (completion.wc_flags & IBV_WC_WITH_IMM) == 0) {
    return result;
  }
  result.solicited = true;
  const uint32_t token = ntohl(completion.imm_data);
  if (token == kImmediateSolicit) {
    return result;
  }
  const bool invalidated = domain_->InvalidateRemote(token, address_.qpn);
  if (invalidated) {
    result.type = OperationType::kReceiveAndInvalidate;
    result.invalidated = RemoteToken{token};
  } else {
    result.status = NtStatus::kInvalidDeviceRequest;
  }
  if (peer != nullptr) {
    peer->OnInvalidateResult(invalidated);
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
      return;  // Abandoned before the completion arrived.
    }
    // Stays in place until it has a result, which only this thread sets.
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

// Reports completed receives from the front of the queue. One thread does so at a time; other threads leave theirs to
// it.
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
    prepared = {};  // Release first: the listener may reuse the memory.
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

// A card reports neither that it failed a queue pair because of the peer nor that an idle peer is dead.
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

// Posts a write of 0 bytes: the peer's card responds without checking a key. Only where silence would mean a dead peer.
bool VerbsEndpoint::SendProbe() {
  MutexLock lock(mutex_);
  const bool peer_is_up = peer_is_local_ ? !awaiting_peer_ : peer_seen_;
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

void VerbsEndpoint::OnDeviceRemoved() {
  LosePeer();
  Fail();
  Abandon();
}

// Completes every request posted to the card as cancelled, because the card will not return them.
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
