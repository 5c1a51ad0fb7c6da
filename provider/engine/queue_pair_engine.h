#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "provider/engine/engine_card.h"
#include "provider/engine/engine_connection.h"
#include "provider/engine/engine_fabric.h"
#include "provider/engine/engine_receives.h"
#include "provider/engine/engine_sends.h"
#include "provider/engine/engine_threads.h"

namespace rnicd::provider {

// One side of a connection, for every kind of card: the order of its requests, and the events that end them. Its state
// is in parts, each with one job: EngineConnection, EngineSends, EngineReceives, EngineThreads. The engine has what
// they share: the lock, the card and the listener, which are called without it, and the peer's engine.
//
// A thread that gives the engine work becomes its runner, unless another thread already is, and runs until no request
// can make progress; only the runner begins and reports requests of the initiator queue. Receives are reported from the
// front of their queue by one thread at a time, which need not be the runner.
//
// Requests that need a peer of this process wait until it has connected, and each side is notified at once when the
// other side ends. Nothing begins in the error state: requests that wait are cancelled in order, and the card ends
// those that have started.
//
// A card that copies into its peer's memory itself enters the peer's engine as a visitor (EnterPeer, Release). While
// a visitor is inside, Disconnect does not return, and the receive that it has taken is not flushed.
// Lifetime: shared by its owner, its peer and its card's threads.
// Threads: safe; no lock is held across engines.
class QueuePairEngine final : public std::enable_shared_from_this<QueuePairEngine> {
 public:
  struct Options {
    // The peer's Connect finds the engine by it.
    std::string address;
    QueuePairLimits limits;
    EngineRules rules;
  };
  // `fabric` outlives Shutdown if the card does; `listener` outlives Shutdown.
  QueuePairEngine(std::unique_ptr<EngineCard> card, Options options, EngineFabric& fabric, QueuePairListener& listener);
  QueuePairEngine(const QueuePairEngine&) = delete;
  QueuePairEngine& operator=(const QueuePairEngine&) = delete;

  // For the owner: see DeviceQueuePair.
  QueuePairState state() const;
  const std::string& address() const { return options_.address; }
  // `read_limit`: of this connection, in place of EngineRules::read_limit; 0: as that says.
  absl::Status Connect(std::string_view peer_address, uint32_t read_limit = 0);
  absl::StatusOr<RemoteToken> Enqueue(WorkRequest&& work);
  void Run();
  void Disconnect();
  void Shutdown();

  // For a peer's card, or for the own card on behalf of a peer elsewhere. True when the visitor, by its address, is the
  // connected peer and this side has not failed; Release must follow.
  bool EnterPeer(std::string_view visitor);
  // Takes the oldest receive that is not taken yet; ReceiveEnded must follow. Null when there is none: the visitor is
  // run again when one is posted.
  EngineRequest* TakeReceive();

  // For the card. Results of requests that have started or were taken; Run must follow Ended, which fails this side,
  // and if the outcome says so the peer, for any status but kSuccess. Ended: false when the request has ended already,
  // and its outcome is ignored.
  bool Ended(uint64_t serial, CardOutcome outcome);
  void ReceiveEnded(uint64_t serial, const Completion& result);
  // The card has filled the receive: `read` makes its result. A failure fails this side, before it is reported.
  void ReceiveFilled(uint64_t serial, absl::FunctionRef<Completion(const EngineRequest&)> read);
  // A request that has started begins once more, on the runner.
  void Resume(uint64_t serial);
  // Reports the dead peer to the owner, once. Ignored in the error state, so call it before this side fails because of
  // the dead peer.
  void LosePeer();
  // Takes the queue pair to the error state. Run must follow: the runner notifies local peers. `cause` is the status of
  // the oldest request, if that is cancelled; not kSuccess.
  void Fail(NtStatus cause = NtStatus::kCancelled);
  // Completes everything started as cancelled, because the card will not; for a queue pair that has failed.
  void Abandon();
  // Abandons what the card has kept for longer than EngineRules::card_timeout; called now and then. True when it has.
  bool AbandonIfLate();
  // The peer's send has asked for this token to be invalidated here, with that result: completes the receive, and
  // reports to a peer that waits for it.
  void Invalidated(RemoteToken token, bool invalidated, Completion& receive);
  // If the queue pair is connected, nothing is outstanding at the card, and the peer has not ended: true, and
  // Disconnect does not return until Release.
  bool HoldIfIdle();
  void Release();

 private:
  friend class EngineQueuePair;

  // State that one step of the runner passes to the next.
  struct Runner {
    EngineTurn turn;
    // The request that was reported last: stored for later requests.
    std::unique_ptr<EngineRequest> spent;
    // The request that has begun, and its result.
    EngineRequest* begun = nullptr;
    BeginResult result;
    // With EngineRules::local_requests_together: that request and those that begin with it.
    std::vector<EngineRequest*> together;
    std::vector<BeginResult> results;
  };

  // Connecting. Expect: `visitor` has connected to this engine. With kInit, its OnPeerReady or LoseConnection follows.
  absl::Status EndConnecting(const absl::StatusOr<EnginePeer>& peer, uint32_t read_limit);
  QueuePairState Expect(const std::shared_ptr<QueuePairEngine>& visitor);
  void OnPeerReady(const std::string& peer_address);
  void NotifyEarlyVisitors();
  void CheckPeerReadiness(QueuePairEngine& peer);
  // The peer with that address died or ended the connection; with `fatal`, it made an access that fails this side too.
  // Ignored unless the address is that of the connected peer, because other endpoints may know the address and connect
  // to it.
  void LoseConnection(const std::string& peer_address, bool fatal);
  // Fails this side because of a request with this outcome; also fails the peer if the request failed there.
  void FailWith(const CardOutcome& outcome);
  void NotifyPeers(const EngineConnection::Engines& peers);

  // Posting.
  void EnqueueRefused(const Completion& refusal);
  // A request to fill in, used before if there is one. Errors: QP_NOT_CONNECTED, QUEUE_FULL.
  absl::StatusOr<std::unique_ptr<EngineRequest>> TakeSpare(bool receive);
  std::unique_ptr<EngineRequest> Spare() RNICD_REQUIRES(mutex_);
  absl::Status EnqueueReceive(std::unique_ptr<EngineRequest> request);

  // The runner.
  void RunLoop();
  bool StopRunning();
  // False when no request can make progress.
  bool Step(Runner& runner);
  EngineRequest* NextToBegin(EngineTurn& turn) RNICD_REQUIRES(mutex_);
  // Adds to a request that needs no peer those behind it that may begin with it.
  void TakeTogether(Runner& runner) RNICD_REQUIRES(mutex_);
  void Begin(Runner& runner);
  void BeginTogether(Runner& runner);
  void Report(EngineRequest& request);
  void ReportReceives();
  // Reads that have started begin once more, at once. Returns when the runner has stopped.
  void FinishReads();

  const std::unique_ptr<EngineCard> card_;
  const Options options_;
  EngineFabric& fabric_;
  QueuePairListener& listener_;

  mutable Mutex mutex_;
  EngineConnection connection_ RNICD_GUARDED_BY(mutex_);
  EngineSends sends_ RNICD_GUARDED_BY(mutex_);
  EngineReceives receives_ RNICD_GUARDED_BY(mutex_);
  EngineThreads threads_ RNICD_GUARDED_BY(mutex_);
  // Deadline for what has started; set when the queue pair fails.
  std::optional<Instant> give_up_at_ RNICD_GUARDED_BY(mutex_);
  // Requests that are over, for later ones.
  std::vector<std::unique_ptr<EngineRequest>> spares_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
