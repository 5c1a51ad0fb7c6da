// Events from the card, on the loop's thread: completions, and detection of a removed card or a dead peer.

#include <arpa/inet.h>

#include <array>
#include <utility>

#include "provider/verbs/card/verbs_status.h"
#include "provider/verbs/queue/verbs_endpoint.h"

namespace rnicd::provider {
namespace {

constexpr int kCompletionsAtATime = 32;

}  // namespace

void VerbsEndpoint::OnCqEvent() {
  std::array<ibv_wc, kCompletionsAtATime> completions;
  int count = queue_pair_.Poll(completions, /*arm=*/true);
  while (count > 0) {
    for (int index = 0; index < count; ++index) {
      const ibv_wc& completion = completions[static_cast<size_t>(index)];
      if (completion.wr_id == kProbeId) {
        OnProbeCompletion(completion);
      } else if ((completion.wr_id & kReceiveBit) != 0) {
        engine().ReceiveFilled(completion.wr_id & ~kReceiveBit,
                               [&](const EngineRequest& receive) { return ReadReceive(completion, receive); });
      } else {
        OnSendCompletion(completion);
      }
    }
    count = queue_pair_.Poll(completions, /*arm=*/false);
  }
  engine().Run();
}

// Some cards report an error of the request when the port is down. The request's local access was checked before it was
// posted, so check the port.
bool VerbsEndpoint::IsTimeout(ibv_wc_status status) {
  VerbsContext& context = domain_->context();
  return IsPeerSilent(status) ||
         (status == IBV_WC_LOC_QP_OP_ERR && !context.device().PortIsActive(node(), context.raw()));
}

void VerbsEndpoint::OnSendCompletion(const ibv_wc& completion) {
  const bool is_bind = (completion.wr_id & kBindBit) != 0;
  {
    MutexLock lock(mutex_);
    peer_seen_ = peer_seen_ || (completion.status == IBV_WC_SUCCESS && !is_bind);
  }
  CardOutcome outcome{.status = CompletionStatus(completion.status, is_bind ? WorkKind::kBind : WorkKind::kInitiator),
                      .at_peer = IsRemoteRefusal(completion.status),
                      // A flush that this side did not request: the card failed this side because of the peer.
                      .peer_lost = completion.status == IBV_WC_WR_FLUSH_ERR};
  if (IsTimeout(completion.status)) {
    outcome.status = NtStatus::kIoTimeout;
    outcome.peer_lost = true;
  }
  engine().Ended(completion.wr_id & ~kBindBit, outcome);
}

// rxe reports an invalidation by another bit, which on other cards and in this kind of queue pair means nothing; so the
// token must be one of a registration in force.
bool VerbsEndpoint::IsInvalidation(const ibv_wc& completion) const {
  constexpr unsigned kBitOfRxe = 1U << 2;
  const bool by_rxe = domain_->device().engines().kernel && (completion.wc_flags & kBitOfRxe) != 0 &&
                      (completion.wc_flags & IBV_WC_WITH_IMM) == 0 && domain_->HasRemote(completion.invalidated_rkey);
  return (completion.wc_flags & IBV_WC_WITH_INV) != 0 || by_rxe;
}

Completion VerbsEndpoint::ReadReceive(const ibv_wc& completion, const EngineRequest& receive) {
  Completion result{.request_context = receive.work.request_context,
                    .type = OperationType::kReceive,
                    .status = CompletionStatus(completion.status, WorkKind::kReceive)};
  if (result.status != NtStatus::kSuccess) {
    if (result.status != NtStatus::kCancelled && !MayReceive(*domain_, receive)) {
      result.status = NtStatus::kAccessViolation;
    }
    return result;
  }
  bool peer_is_rnicd = false;
  {
    MutexLock lock(mutex_);
    peer_is_rnicd = peer_is_rnicd_;
    peer_seen_ = true;
  }
  result.bytes = completion.byte_len;
  // A card does not report whether the sender requested a solicited event. A daemon sends that in immediate data; every
  // message of any other peer counts as solicited.
  result.solicited = !peer_is_rnicd;
  if (!peer_is_rnicd && IsInvalidation(completion)) {
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
  engine().Invalidated(RemoteToken{token}, domain_->InvalidateRemote(token, queue_pair_.address().qpn), result);
  return result;
}

void VerbsEndpoint::OnProbeCompletion(const ibv_wc& completion) {
  {
    MutexLock lock(mutex_);
    peer_seen_ = peer_seen_ || completion.status == IBV_WC_SUCCESS;
    if (!std::exchange(probing_, false)) {
      return;  // Given up before the completion arrived.
    }
  }
  if (completion.status != IBV_WC_SUCCESS) {
    engine().LosePeer();
    // The card only flushes the request behind the probe, which would have timed out.
    engine().Fail(IsTimeout(completion.status) ? NtStatus::kIoTimeout : NtStatus::kCancelled);
  }
  engine().Release();
}

void VerbsEndpoint::OnTick() {
  if (engine().AbandonIfLate()) {
    EndProbe();
    return;
  }
  bool look = false;
  const bool ready = engine().state() == QueuePairState::kReadyToSend;
  const Instant now = std::chrono::steady_clock::now();
  {
    MutexLock lock(mutex_);
    look = ready && now - last_probe_ >= node().options.probe_interval;
    last_probe_ = look ? now : last_probe_;
  }
  if (look) {
    Probe();
  }
}

// A card reports neither that it failed a queue pair because of the peer nor that an idle peer is dead.
void VerbsEndpoint::Probe() {
  if (!queue_pair_.StillWorks() || !SendProbe()) {
    OnFailedByCard();
  }
}

// Because of the peer, unless a completion that is not read yet has another cause.
void VerbsEndpoint::OnFailedByCard() {
  OnCqEvent();
  bool probing = false;
  {
    MutexLock lock(mutex_);
    probing = probing_;
  }
  engine().LosePeer();
  engine().Fail(probing ? NtStatus::kIoTimeout : NtStatus::kCancelled);
  engine().Run();
}

// Posts a write of 0 bytes: the peer's card responds without checking a key. Only where silence would mean a dead peer.
// False when the card refuses.
bool VerbsEndpoint::SendProbe() {
  {
    MutexLock lock(mutex_);
    if (probing_ || (!peer_is_local_ && !peer_seen_)) {
      return true;
    }
  }
  if (!engine().HoldIfIdle()) {
    return true;
  }
  ibv_send_wr request = {};
  request.wr_id = kProbeId;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  bool refused = false;
  bool posted = false;
  {
    MutexLock lock(mutex_);
    refused = !failed_ && queue_pair_.PostSend(request) != 0;
    posted = probing_ = !failed_ && !refused;
  }
  if (!posted) {
    engine().Release();
  }
  return !refused;
}

void VerbsEndpoint::OnCardEvent() {
  if (engine().state() == QueuePairState::kReadyToSend && !queue_pair_.StillWorks()) {
    OnFailedByCard();
  }
}

void VerbsEndpoint::OnDeviceRemoved() {
  engine().LosePeer();
  engine().Fail();
  engine().Abandon();
  EndProbe();
}

// The card will not return it.
void VerbsEndpoint::EndProbe() {
  bool probing = false;
  {
    MutexLock lock(mutex_);
    probing = std::exchange(probing_, false);
  }
  if (probing) {
    engine().Release();
  }
}

}  // namespace rnicd::provider
