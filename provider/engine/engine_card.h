#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/ntstatus.h"
#include "provider/engine/engine_request.h"

namespace rnicd::provider {

class EngineCard;
class QueuePairEngine;

// What the engine does for a card and what the card does itself.
struct EngineRules {
  // Reads that may be in progress; requests with a read fence wait for all of them. 0: the card handles both.
  uint32_t read_limit = 0;
  // A disconnect lets reads that have started complete first. Only where each can begin a second time at once.
  bool finishes_reads = false;
  // Bytes that a runner moves before it leaves the rest to EngineCard::RunLater, so that no caller is blocked for long.
  // 0: no bound.
  uint64_t bytes_per_turn = 0;
  // Fast registrations, invalidations and binds begin when every earlier request is complete, and later requests wait
  // for them; later requests also wait for a read with local invalidate. False: the card executes them in any place.
  bool local_requests_alone = false;
  // The most of them that begin together, with local_requests_alone and EngineCard::BeginTogether. 0: none do.
  size_t local_requests_together = 0;
  // A SendAndInvalidate to a peer in this process is complete when the card has ended it and the peer has reported
  // whether the token was invalidated (QueuePairEngine::Invalidated); later requests wait for both. False: the card
  // handles this.
  bool awaits_invalidations = false;
  // Timeout, from Fail on, for the card to end the requests that have started: see QueuePairEngine::AbandonIfLate.
  // Empty: no timeout.
  std::optional<std::chrono::milliseconds> card_timeout;
};

// The other side of a connection.
struct EnginePeer {
  // In the spelling of the peer's engine.
  std::string address;
  // Null for a peer that is not in this process, whose readiness is unknown.
  std::shared_ptr<QueuePairEngine> engine;
};

// Situation of a request that begins.
struct EngineTurn {
  // Null when the peer was destroyed or is not in this process, and for a request that needs no peer.
  std::shared_ptr<QueuePairEngine> peer;
  // Null with `peer`.
  EngineCard* peer_card = nullptr;
  // The peer is in this process and has ended.
  bool peer_lost = false;
  bool peer_is_local = false;
  // No earlier request is outstanding.
  bool is_first = false;
  // The request begins for the second time, because the card resumed it.
  bool resumed = false;
  // Bytes moved since the runner began; the card adds to it.
  uint64_t moved = 0;
  // The runner has stopped, and another thread continues.
  bool handed_over = false;
};

// Result of EngineCard::Begin.
struct BeginResult {
  enum class Kind : uint8_t { kDone, kStarted, kBlocked };

  static BeginResult Done(const CardOutcome& outcome) { return {Kind::kDone, outcome, false}; }
  static BeginResult Done(NtStatus status) { return Done(CardOutcome{.status = status}); }
  // QueuePairEngine::Ended or Resume follows, possibly before Begin returns. `holds_back`: later requests wait for it.
  static BeginResult Started(bool holds_back = false) { return {Kind::kStarted, {}, holds_back}; }
  // Nothing has happened; the request begins again when the engine runs next. Not for a resumed request, unless later
  // ones wait for it.
  static BeginResult Blocked() { return {}; }

  // The request is done and has failed.
  bool IsFailure() const { return kind == Kind::kDone && outcome.status != NtStatus::kSuccess; }

  Kind kind = Kind::kBlocked;
  CardOutcome outcome;
  bool holds_back = false;
};

// The hardware of one queue pair: what a kind of card adds to an engine.
// Lifetime: owned by its engine, which is set from the engine's constructor on.
// Threads:  Begin, BeginTogether, Conclude: one call at a time. Issue, PostReceive, RunLater: under the engine's lock,
//           so they must not call the engine. All others: without a lock, from any thread.
class EngineCard {
 public:
  virtual ~EngineCard() = default;

  // Called before a request is accepted; may register memory. A refusal changes nothing, and Clear of the card's part
  // undoes what succeeded. Errors: those of DeviceQueuePair::Enqueue.
  virtual absl::Status Prepare(EngineRequest& request) = 0;
  // Token of a FastRegisterWork or BindWork that is accepted; otherwise 0.
  virtual RemoteToken Issue(EngineRequest& request) = 0;
  // Finds the peer and takes the hardware to the state in which it sends. Errors: those of DeviceQueuePair::Connect.
  virtual absl::StatusOr<EnginePeer> Connect(std::string_view peer_address) = 0;
  virtual BeginResult Begin(EngineRequest& request, EngineTurn& turn) = 0;
  // Begins requests that need no peer and follow each other, only with EngineRules::local_requests_together. The
  // results are Blocked at first. It sets the first as Begin does, and of the others those that are done, up to and
  // including the first that failed. The rest stay blocked, and begin when the engine runs next.
  virtual void BeginTogether(std::span<EngineRequest* const> requests, EngineTurn& turn,
                             std::span<BeginResult> results) {
    results.front() = Begin(*requests.front(), turn);
  }
  // A receive was accepted. It ends through QueuePairEngine::ReceiveEnded or Abandon. Errors: as Prepare.
  virtual absl::Status PostReceive(EngineRequest& /*receive*/) { return absl::OkStatus(); }
  // Last step of a request, in queue order, before it is reported; result.status is its status so far. Returns the
  // status to report.
  virtual NtStatus Conclude(EngineRequest& request) { return request.result.status; }
  // Runs the job on another thread; only with EngineRules::bytes_per_turn.
  virtual void RunLater(std::function<void()> /*job*/) {}
  // Takes the hardware to the error state; called once. Everything started must end: through QueuePairEngine::Ended
  // and ReceiveEnded, or Abandon.
  virtual void Fail() = 0;
  // Destroys the hardware. Called when nothing uses it, possibly more than once.
  virtual void Close() {}

 protected:
  QueuePairEngine& engine() const { return *engine_; }

 private:
  friend class QueuePairEngine;
  QueuePairEngine* engine_ = nullptr;
};

}  // namespace rnicd::provider
