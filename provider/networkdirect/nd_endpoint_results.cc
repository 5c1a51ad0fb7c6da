// Results of the card, on the loop's thread.

#include <array>
#include <utility>

#include "provider/networkdirect/nd_endpoint.h"

namespace rnicd::provider {
namespace {

constexpr size_t kResultsAtATime = 32;

}  // namespace

void NdEndpoint::OnResults(NdLink& link) {
  std::array<ND2_RESULT, kResultsAtATime> results;
  size_t count = results.size();
  while (count == results.size()) {
    count = link.Poll(results);
    for (size_t index = 0; index < count; ++index) {
      OnResult(results[index]);
    }
  }
  bool over = false;
  {
    MutexLock lock(mutex_);
    over = failed_ && at_card_ == 0;
  }
  if (over) {
    engine().Abandon();
  }
  engine().Run();
}

void NdEndpoint::OnResult(const ND2_RESULT& result) {
  const auto context = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(result.RequestContext));
  {
    MutexLock lock(mutex_);
    --at_card_;
    initiated_ -= (context & kReceiveBit) == 0 ? 1 : 0;
  }
  domain_->device().Observe(result.Status);
  if ((context & kReceiveBit) != 0) {
    OnReceiveResult(context & ~kReceiveBit, result);
  } else {
    OnInitiatorResult(context, result);
  }
}

std::optional<NdOutcome> NdEndpoint::EndPart(uint64_t serial, NdOutcome outcome) {
  bool resume = false;
  {
    MutexLock lock(mutex_);
    const auto found = waves_.find(serial);
    if (found == waves_.end()) {
      return outcome;
    }
    Wave& wave = found->second;
    if (wave.outcome.status == NtStatus::kSuccess) {
      wave.outcome = outcome;
    }
    if (--wave.at_card > 0) {
      return std::nullopt;
    }
    outcome = wave.outcome;
    resume = wave.more && outcome.status == NtStatus::kSuccess;
    waves_.erase(found);
  }
  if (!resume) {
    return outcome;
  }
  engine().Resume(serial);
  return std::nullopt;
}

void NdEndpoint::OnInitiatorResult(uint64_t serial, const ND2_RESULT& result) {
  std::optional<NdOutcome> outcome = EndPart(serial, OutcomeOf(result.Status, result.RequestType));
  if (!outcome.has_value()) {
    return;
  }
  const NdOutcome lost{.status = NtStatus::kIoTimeout, .at_peer = false, .peer_lost = true};
  {
    MutexLock lock(mutex_);
    if (outcome->status == NtStatus::kCancelled && !failed_) {
      outcome = lost;  // This side did not ask for it: the connection has ended.
    }
    if (awaited_.has_value() && awaited_->serial == serial) {
      const bool success = outcome->status == NtStatus::kSuccess;
      if (success && !peer_gone_) {
        awaited_->card_is_done = true;
        return;
      }
      awaited_.reset();
      outcome = success ? lost : *outcome;  // The peer ended without an answer.
    }
  }
  const bool success = outcome->status == NtStatus::kSuccess;
  if (outcome->peer_lost) {
    engine().LosePeer();
  }
  if (!engine().Ended(serial, outcome->status, outcome->at_peer) || success) {
    return;
  }
  if (outcome->at_peer) {
    engine().FailPeer();
  }
  engine().Fail();
}

void NdEndpoint::OnInvalidateResult(bool invalidated) {
  uint64_t serial = 0;
  {
    MutexLock lock(mutex_);
    if (!awaited_.has_value()) {
      return;
    }
    serial = awaited_->serial;
    const bool card_is_done = awaited_->card_is_done;
    awaited_.reset();
    if (invalidated && !card_is_done) {
      return;
    }
  }
  engine().Ended(serial, invalidated ? NtStatus::kSuccess : NtStatus::kRemoteResources);
  engine().Run();
}

// --- receives ---

// Tells the owner, and the sender, what the send asked for besides its bytes.
void NdEndpoint::TakeNote(Completion& completion) {
  Note note;
  {
    MutexLock lock(notes_mutex_);
    if (notes_.empty()) {
      return;
    }
    note = notes_.front();
    notes_.pop_front();
  }
  completion.solicited = note.solicit;
  if (!note.invalidate.has_value()) {
    return;
  }
  const bool invalidated = domain_->InvalidateRemote(note.invalidate->value, number_);
  if (invalidated) {
    completion.type = OperationType::kReceiveAndInvalidate;
    completion.invalidated = *note.invalidate;
  } else {
    completion.status = NtStatus::kInvalidDeviceRequest;
  }
  if (const std::shared_ptr<EngineCard> peer = engine().PeerCard(); peer != nullptr) {
    static_cast<NdEndpoint&>(*peer).OnInvalidateResult(invalidated);
  }
}

Completion NdEndpoint::ReadReceive(const ND2_RESULT& result, const EngineRequest& receive) {
  Completion completion{.request_context = receive.work.request_context,
                        .type = OperationType::kReceive,
                        .status = OutcomeOf(result.Status, Nd2RequestTypeReceive).status};
  bool refused = false;
  {
    MutexLock lock(mutex_);
    refused = refused_receives_.erase(receive.serial) > 0;
  }
  if (completion.status == NtStatus::kSuccess) {
    completion.bytes = result.BytesTransferred;
    TakeNote(completion);
  } else if (refused && completion.status != NtStatus::kCancelled) {
    completion.status = NtStatus::kAccessViolation;
  }
  return completion;
}

void NdEndpoint::OnReceiveResult(uint64_t serial, const ND2_RESULT& result) {
  {
    MutexLock lock(mutex_);
    if (result.Status == kNdCanceled && !failed_) {
      // The connection has ended. NDK does not flush receives for that, so this one waits for the end of the queue
      // pair.
      refused_receives_.erase(serial);
      return;
    }
  }
  EngineRequest* const receive = engine().FindReceive(serial);
  if (receive == nullptr) {
    return;  // Abandoned before the result arrived.
  }
  const Completion completion = ReadReceive(result, *receive);
  // Before the report, so that the state is known with the failure.
  if (completion.status != NtStatus::kSuccess) {
    engine().LosePeer();
    engine().Fail();
  }
  engine().ReceiveEnded(serial, completion);
}

// --- the card ---

void NdEndpoint::OnCardFailed() {
  engine().LosePeer();
  engine().Fail();
  engine().Abandon();
}

void NdEndpoint::OnTick() {
  bool give_up = false;
  bool down = false;
  {
    MutexLock lock(mutex_);
    give_up = give_up_at_.has_value() && std::chrono::steady_clock::now() >= *give_up_at_;
    if (give_up) {
      give_up_at_.reset();
    }
    down = send_link_->state() == NdLink::State::kDown;
  }
  if (domain_->device().removed() && engine().state() != QueuePairState::kError) {
    OnCardFailed();
  } else if (give_up) {
    engine().Abandon();
  } else if (down) {
    // It may have ended before the engine knew that it was connected.
    engine().LosePeer();
  }
}

}  // namespace rnicd::provider
