#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "provider/engine/engine_card.h"

namespace rnicd::provider {

// The initiator queue: which request may begin, and as what each is reported. A part of a QueuePairEngine, used under
// its lock. Only the runner begins, settles and removes requests, so it may keep a reference to one without the lock.
class EngineSends {
 public:
  EngineSends(const EngineRules& rules, size_t depth) : rules_(rules), depth_(depth) {}

  // The queue pair is connected. `read_limit` replaces that of the rules; 0: it does not.
  void Open(uint32_t read_limit = 0);
  // Disconnect: nothing is accepted, and nothing begins but what is resumed.
  void Drain();
  // Nothing begins, and requests that wait are cancelled when they are the oldest. `cause` is the status of the first
  // that is reported as cancelled.
  void Fail(NtStatus cause);
  // Cancels all that have started, also those that do so later.
  void Abandon();

  // Errors: QP_NOT_CONNECTED, QUEUE_FULL.
  absl::Status CheckRoom() const;
  EngineRequest& Push(std::unique_ptr<EngineRequest> request);
  // A refused request, if there is room. True when it must fail the queue pair now, because it will never begin.
  bool PushRefused(std::unique_ptr<EngineRequest> request);
  bool empty() const { return queue_.empty(); }
  // Open, with nothing at the card.
  bool idle() const { return gate_ == Gate::kOpen && queue_.begun() == 0; }

  // For the runner. The oldest request, if it has ended; otherwise null.
  std::unique_ptr<EngineRequest> PopEnded();
  // A request was reported as failed: none behind it succeeds.
  void SetReportedFailure() { reported_failure_ = true; }
  // Whether a request may begin now. `reaches_peer`: those that need the peer, too.
  bool MayBegin(bool reaches_peer) const;
  // Begins that request, to a local peer if `turn` has one; sets the fields of `turn` on the request's place in the
  // queue.
  EngineRequest& Begin(EngineTurn& turn);
  // The next request if it may begin together with the last, which is local too; otherwise null.
  EngineRequest* BeginTogether();
  // Records the result of a request that has begun. False when nothing else can make progress.
  bool Settle(EngineRequest& request, const BeginResult& result);

  // Results. False when the request has ended already. A success becomes a timeout where the peer ends without an
  // answer.
  bool End(uint64_t serial, CardOutcome& outcome);
  // The answer to the request that awaits one. True when this has ended the request.
  bool Answer(bool invalidated);
  // The peer will not answer any more.
  void EndAnswers();
  // False when the request has not begun, or has ended.
  bool Resume(uint64_t serial);
  // Resumes all that have started.
  void ResumeAll();

 private:
  using Stage = EngineRequest::Stage;
  enum class Gate : uint8_t { kUnconnected, kOpen, kDraining, kFailed, kAbandoned };

  bool MayBegin(const EngineRequest& request, bool reaches_peer) const;
  void End(EngineRequest& request, const CardOutcome& outcome);
  // The request is not at the card any more.
  void Leave(const EngineRequest& request);
  void Resume(EngineRequest& request);

  EngineRules rules_;
  const size_t depth_;
  Gate gate_ = Gate::kUnconnected;
  RequestQueue queue_;
  // Reads in stage kStarted, and requests in stage kResumed.
  uint32_t reading_ = 0;
  uint32_t resumed_ = 0;
  // The SendAndInvalidate that awaits the peer's answer. At most one, because later requests wait for it.
  EngineRequest* awaited_ = nullptr;
  bool answers_ended_ = false;
  NtStatus cause_ = NtStatus::kCancelled;
  bool reported_failure_ = false;
};

}  // namespace rnicd::provider
