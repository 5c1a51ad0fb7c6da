#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "provider/api/queue_pair.h"
#include "provider/verbs/prepared_request.h"
#include "provider/verbs/qp_address.h"
#include "provider/verbs/verbs_context.h"
#include "provider/verbs/verbs_domain.h"
#include "provider/verbs/verbs_fast_region.h"

namespace rnicd::provider {

// One queue pair of a card, and the order of its requests.
//
// The card executes sends, reads and writes and gets them as soon as they are posted. Requests that the card cannot
// execute in queue order (fast registrations, invalidations, binds) are executed here, when every earlier request is
// complete, and later requests wait for them. So each queue keeps the order that a fully capable card would keep.
//
// A thread that gives the endpoint work becomes its runner, unless another thread already is, and runs until no request
// can make progress; only the runner executes and reports requests of the initiator queue. Receives have a reporter of
// the same kind.
//
// Nothing is posted to the card once the queue pair is in the error state, because cards have internal races there.
//
// If the peer belongs to this daemon, requests wait until it has connected, and each side is notified at once when the
// other side ends. To any other peer, requests are sent immediately, and it is probed when the connection is idle.
// Lifetime: shared by its owner, its peer and the loop. Threads: safe; no lock is held across endpoints.
class VerbsEndpoint final : public CompletionSink, public std::enable_shared_from_this<VerbsEndpoint> {
 public:
  // `listener` outlives Shutdown. Errors: those of VerbStatus.
  static absl::StatusOr<std::shared_ptr<VerbsEndpoint>> Create(std::shared_ptr<VerbsDomain> domain,
                                                               const QueuePairLimits& limits,
                                                               QueuePairListener& listener);
  ~VerbsEndpoint() override;

  // For the owner: see DeviceQueuePair.
  QueuePairState state() const;
  std::string address() const { return address_text_; }
  absl::Status Connect(std::string_view peer_address);
  absl::StatusOr<RemoteToken> Enqueue(WorkRequest request);
  void Run();
  void Flush();
  void Disconnect();
  void Shutdown();

  // For a peer in this daemon.
  enum class PeerReadiness : uint8_t { kReady, kNotYet, kFailed };
  // `visitor` has connected to this endpoint. kNotYet: OnPeerReady or LoseConnection of the visitor follows.
  PeerReadiness Expect(const std::shared_ptr<VerbsEndpoint>& visitor);
  void OnPeerReady(const std::string& peer_address);
  // Result of the oldest SendAndInvalidate without one: whether the peer invalidated its token.
  void OnInvalidateResult(bool invalidated);
  // The peer with that address died or ended the connection; with `fatal`, the card has failed this side too.
  void LoseConnection(const std::string& peer_address, bool fatal);

  // For the loop.
  void OnCqEvent() override;
  void OnTick() override;
  void OnCardEvent() override;
  void OnDeviceRemoved() override;

 private:
  enum class Stage : uint8_t {
    kQueued,
    // Posted to the card.
    kPosted,
    kDone,
  };
  struct Slot {
    PreparedRequest prepared;
    uint64_t serial = 0;
    Stage stage = Stage::kQueued;
    NtStatus status = NtStatus::kSuccess;
    // With kAccessViolation: the peer's card refused the access.
    bool at_peer = false;
    // True once the request was posted to the card.
    bool posted = false;
    // True for a SendAndInvalidate to a peer in this daemon until the peer has reported whether the token was
    // invalidated; the request completes only then.
    bool awaits_invalidate_result = false;
    bool card_is_done = false;
  };
  struct Receive {
    PreparedRequest prepared;
    // Set when the receive is complete.
    std::optional<Completion> result;
  };
  // wr_id of requests posted to the card: initiator requests use their serial, receives their number with this bit set.
  static constexpr uint64_t kReceiveBit = uint64_t{1} << 63;
  static constexpr uint64_t kProbeId = kReceiveBit - 1;
  // Next action of the runner.
  enum class Turn : uint8_t { kNothing, kReport, kBegin };

  VerbsEndpoint(std::shared_ptr<VerbsDomain> domain, const QueuePairLimits& limits, QueuePairListener& listener)
      : domain_(std::move(domain)), limits_(limits), listener_(listener) {}

  VerbsApi& api() { return domain_->api(); }
  VerbsNode& node() { return domain_->context().node(); }

  // Setting up.
  absl::Status Open();
  absl::Status MakeQueuePair();
  absl::Status EnterInit();
  absl::Status EnterReady(const QpAddress& peer);
  absl::Status BeginConnecting();
  void NotifyEarlyVisitors();
  void CheckPeerReadiness(const std::shared_ptr<VerbsEndpoint>& peer);

  // Posting.
  absl::Status CheckRoom(bool receive) const RNICD_REQUIRES(mutex_);
  absl::Status CheckEntries(const PreparedRequest& prepared, bool receive) const;
  uint32_t MaxSendEntries() const;
  absl::Status PostReceive(PreparedRequest prepared) RNICD_REQUIRES(mutex_);
  static Completion CancelledReceive(const PreparedRequest& prepared);
  void ReportReceives();

  // The runner.
  void RunLoop();
  bool Step();
  Turn NextTurn() RNICD_REQUIRES(mutex_);
  bool MayBegin(const Slot& slot) const RNICD_REQUIRES(mutex_);
  bool Begin(Slot& slot);
  bool BeginOnCard(Slot& slot, bool is_first);
  bool BeginHere(Slot& slot);
  NtStatus Execute(Slot& slot);
  // Does nothing in the error state: the request stays queued and is cancelled from there.
  void PostToCard(Slot& slot, ibv_send_wr& request);
  void Finish(Slot& slot, NtStatus status);
  NtStatus Conclude(Slot& slot);
  NtStatus ConcludeBind(Slot& slot);
  void InsertBound(const std::shared_ptr<Invalidatable>& owner, uint32_t token);
  bool HoldsBack(const Slot& slot) const;
  void Report(Slot slot);

  // The loop.
  bool LinkIsAtFault(ibv_wc_status status);
  void OnSendCompletion(const ibv_wc& completion);
  void OnReceiveCompletion(const ibv_wc& completion);
  Completion ReadReceive(const ibv_wc& completion, const PreparedRequest& prepared);
  void OnProbeCompletion(const ibv_wc& completion);
  void Probe();
  bool CardStillWorks();
  bool SendProbe();
  void Abandon();

  // Failing. LosePeer: reports the dead peer to the owner. Fail: takes the queue pair to the error state.
  void LosePeer();
  void Fail();
  void NotifyPeers();
  void EndBusy();
  bool IsQuiet() const RNICD_REQUIRES(mutex_);
  void DestroyQueuePair();

  const std::shared_ptr<VerbsDomain> domain_;
  const QueuePairLimits limits_;
  QueuePairListener& listener_;
  // Set once by Open.
  bool ethernet_ = true;
  QpAddress address_;
  std::string address_text_;

  // Held while the card's queues are used, so that they are not destroyed meanwhile. Taken before mutex_, never after
  // it.
  Mutex queues_mutex_;
  ibv_cq* cq_ RNICD_GUARDED_BY(queues_mutex_) = nullptr;
  // Set once by Open; destroyed by Shutdown, when nothing uses it.
  ibv_qp* qp_ = nullptr;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  QueuePairState state_ RNICD_GUARDED_BY(mutex_) = QueuePairState::kInit;
  bool connecting_ RNICD_GUARDED_BY(mutex_) = false;
  std::string peer_address_ RNICD_GUARDED_BY(mutex_);
  // Peer endpoint, if it belongs to this daemon.
  std::weak_ptr<VerbsEndpoint> peer_ RNICD_GUARDED_BY(mutex_);
  bool peer_is_local_ RNICD_GUARDED_BY(mutex_) = false;
  // True when the peer belongs to an rnicd daemon, which understands the immediate data.
  bool peer_is_rnicd_ RNICD_GUARDED_BY(mutex_) = false;
  // True while a peer of this daemon has not connected: requests that need it wait.
  bool awaiting_peer_ RNICD_GUARDED_BY(mutex_) = false;
  // True once the peer has responded, so that silence means a dead peer.
  bool peer_seen_ RNICD_GUARDED_BY(mutex_) = false;
  bool peer_lost_ RNICD_GUARDED_BY(mutex_) = false;
  // Endpoints that connected here before this side connected, by address.
  std::map<std::string, std::weak_ptr<VerbsEndpoint>> early_visitors_ RNICD_GUARDED_BY(mutex_);
  bool disconnecting_ RNICD_GUARDED_BY(mutex_) = false;
  bool shut_ RNICD_GUARDED_BY(mutex_) = false;
  bool running_ RNICD_GUARDED_BY(mutex_) = false;
  bool run_again_ RNICD_GUARDED_BY(mutex_) = false;
  // Callbacks and calls to peers in progress, besides the runner's.
  uint64_t busy_ RNICD_GUARDED_BY(mutex_) = 0;
  bool probing_ RNICD_GUARDED_BY(mutex_) = false;
  Instant last_probe_ RNICD_GUARDED_BY(mutex_);
  // Deadline for the card's outstanding completions; set when the queue pair fails.
  std::optional<Instant> give_up_at_ RNICD_GUARDED_BY(mutex_);
  // Serial of the next initiator request. Serials have no gaps, so a serial gives the position of its request.
  uint64_t next_serial_ RNICD_GUARDED_BY(mutex_) = 1;
  // Initiator requests. Only the runner removes slots, so it may keep a reference to one without the lock.
  std::deque<Slot> slots_ RNICD_GUARDED_BY(mutex_);
  // Number of slots, from the front, that have begun.
  size_t begun_ RNICD_GUARDED_BY(mutex_) = 0;
  std::deque<Receive> receives_ RNICD_GUARDED_BY(mutex_);
  // Number of the first entry of receives_.
  uint64_t first_receive_ RNICD_GUARDED_BY(mutex_) = 1;
  bool reporting_receives_ RNICD_GUARDED_BY(mutex_) = false;
  // Windows that this queue pair has bound, by owner: they must be destroyed before the queue pair.
  struct Bound {
    std::weak_ptr<Invalidatable> owner;
    uint32_t token = 0;
  };
  std::map<const Invalidatable*, Bound> bound_ RNICD_GUARDED_BY(mutex_);
  // Size of bound_ at which entries without a live owner are removed.
  size_t prune_bound_at_ RNICD_GUARDED_BY(mutex_) = 64;
};

}  // namespace rnicd::provider
