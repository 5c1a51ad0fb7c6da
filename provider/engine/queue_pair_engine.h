#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "provider/engine/engine_card.h"
#include "provider/engine/engine_fabric.h"

namespace rnicd::provider {

// One side of a connection, for every kind of card: the order of its requests, and the events that end them.
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
// Lifetime: shared by its owner, its peer and its card's threads. Threads: safe; no lock is held across engines.
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
  absl::Status Connect(std::string_view peer_address);
  absl::StatusOr<RemoteToken> Enqueue(WorkRequest&& work);
  void Run();
  void Disconnect();
  void Shutdown();

  // For a peer's card. True when `visitor` is the connected peer and this side has not failed; Release must follow.
  bool EnterPeer(const QueuePairEngine& visitor);
  // The oldest receive that nobody has taken; ReceiveEnded must follow. Null when there is none: the visitor is run
  // again when one is posted.
  EngineRequest* TakeReceive();

  // For the card. Results of requests that have started or were taken; Run must follow Ended, which fails this side,
  // and if the outcome says so the peer, for any status but kSuccess. Ended: false when the request has ended already,
  // and its outcome is ignored.
  bool Ended(uint64_t serial, CardOutcome outcome);
  void ReceiveEnded(uint64_t serial, const Completion& result);
  // The receive with that serial, for ReceiveEnded; null when it has ended.
  EngineRequest* FindReceive(uint64_t serial);
  // A request that has started begins once more, on the runner.
  void Resume(uint64_t serial);
  // Reports to the owner, once, that the peer is dead. Ignored in the error state, so it comes before whatever fails
  // this side because of that.
  void LosePeer();
  // Takes the queue pair to the error state. Run must follow: the runner notifies local peers. `cause` is the status of
  // the oldest request, if that is cancelled; not kSuccess.
  void Fail(NtStatus cause = NtStatus::kCancelled);
  // Completes everything started as cancelled, because the card will not; for a queue pair that has failed.
  void Abandon();
  // Abandons what the card has kept for longer than EngineRules::card_timeout; called now and then. True when it has.
  bool AbandonIfLate();
  // The peer's send has asked for this token to be invalidated here, with that result: completes the receive, and tells
  // a peer that waits for it.
  void Invalidated(RemoteToken token, bool invalidated, Completion& receive);
  // If the queue pair is connected, nothing is outstanding at the card, and the peer has not ended: true, and
  // Disconnect does not return until Release.
  bool HoldIfIdle();
  void Release();

 private:
  using Stage = EngineRequest::Stage;
  // What one step of the runner leaves to the next.
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
  absl::Status BeginConnecting();
  QueuePairState Expect(const std::shared_ptr<QueuePairEngine>& visitor);
  void OnPeerReady(const std::string& peer_address);
  void NotifyEarlyVisitors();
  void CheckPeerReadiness(QueuePairEngine& peer);

  // The peer with that address died or ended the connection; with `fatal`, it made an access that fails this side too.
  // Ignored unless the address is that of the connected peer, because other endpoints may know the address and connect
  // to it.
  void LoseConnection(const std::string& peer_address, bool fatal);

  // Posting.
  absl::Status CheckRoom(bool receive) const RNICD_REQUIRES(mutex_);
  std::unique_ptr<EngineRequest> TakeSpare() RNICD_REQUIRES(mutex_);
  absl::Status EnqueueReceive(std::unique_ptr<EngineRequest> request);

  // The runner.
  void RunLoop();
  bool StopRunning();
  // False when no request can make progress.
  bool Step(Runner& runner);
  void CancelFront() RNICD_REQUIRES(mutex_);
  EngineRequest* NextToBegin(EngineTurn& turn) RNICD_REQUIRES(mutex_);
  EngineRequest* NextResumed() RNICD_REQUIRES(mutex_);
  void MarkResumed(EngineRequest& request) RNICD_REQUIRES(mutex_);
  bool MayBegin(const EngineRequest& request) const RNICD_REQUIRES(mutex_);
  void Begin(Runner& runner);
  // Fails this side because of a request that has ended so, and if it failed at the peer that one as well.
  void FailWith(const CardOutcome& outcome);
  // Adds to a request that needs no peer those behind it that may begin with it.
  void TakeTogether(Runner& runner) RNICD_REQUIRES(mutex_);
  void BeginTogether(Runner& runner);
  // Records what became of a request that has begun. False when nothing else can make progress.
  bool Settle(EngineRequest& request, const BeginResult& result) RNICD_REQUIRES(mutex_);
  // Reads that have started begin once more, at once. Returns when the runner has stopped.
  void FinishReads();
  void End(EngineRequest& request, NtStatus status, bool at_peer) RNICD_REQUIRES(mutex_);
  // Whether the request waits for the peer's answer, too, when the card is done.
  bool AwaitsPeer(const EngineRequest& request) const RNICD_REQUIRES(mutex_);
  // The answer of the peer: whether it invalidated the token.
  void EndAwaited(bool invalidated);
  void Report(EngineRequest& request);
  void ReportReceives();

  void NotifyPeers();
  bool Quiet() const RNICD_REQUIRES(mutex_);

  const std::unique_ptr<EngineCard> card_;
  const Options options_;
  EngineFabric& fabric_;
  QueuePairListener& listener_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  QueuePairState state_ RNICD_GUARDED_BY(mutex_) = QueuePairState::kInit;
  bool connecting_ RNICD_GUARDED_BY(mutex_) = false;
  std::string peer_address_ RNICD_GUARDED_BY(mutex_);
  std::weak_ptr<QueuePairEngine> peer_ RNICD_GUARDED_BY(mutex_);
  bool peer_is_local_ RNICD_GUARDED_BY(mutex_) = false;
  // True while a peer of this process has not connected: requests that need it wait.
  bool awaiting_peer_ RNICD_GUARDED_BY(mutex_) = false;
  bool peer_lost_ RNICD_GUARDED_BY(mutex_) = false;
  // A peer of this process has ended, so it answers nothing.
  bool peer_ended_ RNICD_GUARDED_BY(mutex_) = false;
  // Engines that connected to this one before it connected, by address.
  std::map<std::string, std::weak_ptr<QueuePairEngine>> early_visitors_ RNICD_GUARDED_BY(mutex_);
  // A visitor found no receive.
  bool sender_waits_ RNICD_GUARDED_BY(mutex_) = false;
  bool notified_peers_ RNICD_GUARDED_BY(mutex_) = false;
  bool disconnecting_ RNICD_GUARDED_BY(mutex_) = false;
  bool shut_ RNICD_GUARDED_BY(mutex_) = false;
  bool abandoned_ RNICD_GUARDED_BY(mutex_) = false;
  // Status of the first request that is reported as cancelled.
  NtStatus cause_ RNICD_GUARDED_BY(mutex_) = NtStatus::kCancelled;
  // Deadline for what has started; set when the queue pair fails.
  std::optional<Instant> give_up_at_ RNICD_GUARDED_BY(mutex_);
  // A request was reported as failed: none behind it succeeds.
  bool reported_failure_ RNICD_GUARDED_BY(mutex_) = false;
  bool running_ RNICD_GUARDED_BY(mutex_) = false;
  bool run_again_ RNICD_GUARDED_BY(mutex_) = false;
  // Number of runners that have stopped.
  uint64_t runs_ RNICD_GUARDED_BY(mutex_) = 0;
  bool reporting_receives_ RNICD_GUARDED_BY(mutex_) = false;
  // Visitors, and callbacks and calls to peers in progress besides the runner's.
  uint64_t busy_ RNICD_GUARDED_BY(mutex_) = 0;
  // Reads in stage kStarted, and requests in stage kResumed.
  uint32_t reading_ RNICD_GUARDED_BY(mutex_) = 0;
  uint32_t resumed_ RNICD_GUARDED_BY(mutex_) = 0;
  // Only the runner removes initiator requests, so it may keep a reference to one without the lock.
  RequestQueue sends_ RNICD_GUARDED_BY(mutex_);
  RequestQueue receives_ RNICD_GUARDED_BY(mutex_);
  // The SendAndInvalidate that waits for the peer's answer. At most one, because later requests wait for it.
  EngineRequest* awaited_ RNICD_GUARDED_BY(mutex_) = nullptr;
  // Requests that are over, for later ones.
  std::vector<std::unique_ptr<EngineRequest>> spares_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
