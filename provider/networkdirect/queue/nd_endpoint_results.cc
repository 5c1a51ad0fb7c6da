// Results of the card, on the loop's thread.

#include <array>
#include <utility>

#include "provider/networkdirect/queue/nd_endpoint.h"

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

std::optional<CardOutcome> NdEndpoint::EndPart(uint64_t serial, CardOutcome outcome) {
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
  std::optional<CardOutcome> outcome = EndPart(serial, OutcomeOf(result.Status, result.RequestType));
  if (!outcome.has_value()) {
    return;
  }
  {
    MutexLock lock(mutex_);
    if (outcome->status == NtStatus::kCancelled && !failed_) {
      // This side did not ask for it: the connection has ended.
      outcome = {.status = NtStatus::kIoTimeout, .at_peer = false, .peer_lost = true};
    }
  }
  engine().Ended(serial, *outcome);
}

// --- receives ---

// What the send asked for besides its bytes.
void NdEndpoint::TakeNote(Completion& completion) {
  const std::optional<SendWork> note = notes_.Take();
  completion.solicited = note.has_value() && note->solicit;
  if (note.has_value() && note->invalidate.has_value()) {
    engine().Invalidated(*note->invalidate, domain_->InvalidateRemote(note->invalidate->value, number_), completion);
  }
}

Completion NdEndpoint::ReadReceive(const ND2_RESULT& result, const EngineRequest& receive) {
  Completion completion{.request_context = receive.work.request_context,
                        .type = OperationType::kReceive,
                        .status = OutcomeOf(result.Status, Nd2RequestTypeReceive).status};
  if (completion.status == NtStatus::kSuccess) {
    completion.bytes = result.BytesTransferred;
    TakeNote(completion);
  } else if (NdPreparedOf(receive).refused && completion.status != NtStatus::kCancelled) {
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
      return;
    }
  }
  engine().ReceiveFilled(serial, [&](const EngineRequest& receive) { return ReadReceive(result, receive); });
}

// --- the card ---

void NdEndpoint::OnCardFailed() {
  engine().LosePeer();
  engine().Fail();
  engine().Abandon();
}

void NdEndpoint::OnTick() {
  if (domain_->device().removed() && engine().state() != QueuePairState::kError) {
    OnCardFailed();
  } else if (!engine().AbandonIfLate() && send_link_->state() == NdLink::State::kDown) {
    // It may have ended before the engine knew that it was connected.
    engine().LosePeer();
  }
}

}  // namespace rnicd::provider
