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
// The card executes sends, reads and writes; it is given them as soon as they are posted. What the card cannot do in
// queue order (fast registrations, invalidations, binds) is executed here, when every earlier request is complete, and
// later ones wait for it. So each queue keeps the order that a card which could do it all would keep.
//
// Whoever gives the endpoint something to do becomes its runner, unless there is one already, and runs until nothing
// can go on; requests of the initiator queue are executed and reported by the runner only. Receives have a reporter of
// the same kind.
//
// Nothing is given to the card once the queue pair is in the error state: cards race with themselves there.
//
// The peer may belong to this daemon: then requests wait until it has connected, and each side is told at once what
// becomes of the other. Any other peer is given the requests, and is probed when the connection is idle.
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
  enum class Welcome : uint8_t { kReady, kNotYet, kFailed };
  // `visitor` has connected here. kNotYet: it is told by OnPeerReady, or by LoseConnection.
  Welcome Expect(const std::shared_ptr<VerbsEndpoint>& visitor);
  void OnPeerReady(const std::string& peer_address);
  // What became of the token of the oldest SendAndInvalidate that was not judged yet.
  void OnVerdict(bool invalidated);
  // The peer of that address is gone, or ended the connection; with `fatal`, the card has failed this side too.
  void LoseConnection(const std::string& peer_address, bool fatal);

  // For the loop.
  void OnCqEvent() override;
  void OnTick() override;
  void OnCardEvent() override;
  void OnDeviceGone() override;

 private:
  enum class Stage : uint8_t {
    kQueued,
    // The card has it.
    kPosted,
    kDone,
  };
  struct Slot {
    PreparedRequest prepared;
    uint64_t serial = 0;
    Stage stage = Stage::kQueued;
    NtStatus status = NtStatus::kSuccess;
    // The card was given it.
    bool posted = false;
    // Of a SendAndInvalidate to a peer in this daemon: complete when the peer has said what became of the token, too.
    bool awaits_verdict = false;
    bool card_is_done = false;
  };
  struct Receive {
    PreparedRequest prepared;
    // Set when it is complete.
    std::optional<Completion> result;
  };
  // How requests are numbered towards the card: initiator requests by their serial, receives by that and this bit.
  static constexpr uint64_t kReceiveBit = uint64_t{1} << 63;
  static constexpr uint64_t kProbeId = kReceiveBit - 1;
  // What the runner can do next.
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
  void WelcomeVisitors();
  void MeetPeer(const std::shared_ptr<VerbsEndpoint>& peer);

  // Posting.
  absl::Status CheckRoom(bool receive) const RNICD_REQUIRES(mutex_);
  absl::Status CheckEntries(const PreparedRequest& prepared, bool receive) const;
  uint32_t MaxSendEntries() const;
  absl::Status PostReceive(PreparedRequest prepared) RNICD_REQUIRES(mutex_);
  static Completion CancelledReceive(const PreparedRequest& prepared);
  void ReportReceives();

  // The runner.
  void RunOn();
  bool Step();
  Turn NextTurn() RNICD_REQUIRES(mutex_);
  bool MayBegin(const Slot& slot) const RNICD_REQUIRES(mutex_);
  bool Begin(Slot& slot);
  bool BeginOnCard(Slot& slot, bool is_first);
  bool BeginHere(Slot& slot);
  NtStatus Execute(Slot& slot);
  // Not in the error state: then the request stays where it is, and is cancelled from there.
  void PostToCard(Slot& slot, ibv_send_wr& request);
  void Finish(Slot& slot, NtStatus status);
  NtStatus Conclude(Slot& slot);
  NtStatus ConcludeBind(Slot& slot);
  void NoteBound(const std::shared_ptr<Invalidatable>& owner, uint32_t token);
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

  // Failing. Lose: the owner is told that the peer is gone. Fail: the queue pair goes to the error state.
  void LosePeer();
  void Fail();
  void TellPeers();
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

  // Held while the card's queues are used, so that they do not go meanwhile. Taken before mutex_, never after it.
  Mutex queues_mutex_;
  ibv_cq* cq_ RNICD_GUARDED_BY(queues_mutex_) = nullptr;
  // Set once by Open; destroyed by Shutdown, when nothing uses it any more.
  ibv_qp* qp_ = nullptr;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  QueuePairState state_ RNICD_GUARDED_BY(mutex_) = QueuePairState::kInit;
  bool connecting_ RNICD_GUARDED_BY(mutex_) = false;
  std::string peer_address_ RNICD_GUARDED_BY(mutex_);
  // The other side, when it belongs to this daemon.
  std::weak_ptr<VerbsEndpoint> peer_ RNICD_GUARDED_BY(mutex_);
  bool peer_is_ours_ RNICD_GUARDED_BY(mutex_) = false;
  // The peer is a daemon too, and understands what is said in immediate data.
  bool peer_speaks_ RNICD_GUARDED_BY(mutex_) = false;
  // The peer is ours and has not connected: what needs it waits.
  bool awaiting_peer_ RNICD_GUARDED_BY(mutex_) = false;
  // Something came from the peer, so that its silence means something.
  bool peer_seen_ RNICD_GUARDED_BY(mutex_) = false;
  bool peer_lost_ RNICD_GUARDED_BY(mutex_) = false;
  // Who connected here before this side connected, by address.
  std::map<std::string, std::weak_ptr<VerbsEndpoint>> early_visitors_ RNICD_GUARDED_BY(mutex_);
  bool disconnecting_ RNICD_GUARDED_BY(mutex_) = false;
  bool shut_ RNICD_GUARDED_BY(mutex_) = false;
  bool running_ RNICD_GUARDED_BY(mutex_) = false;
  bool run_again_ RNICD_GUARDED_BY(mutex_) = false;
  // Upcalls, and calls to peers, that are under way besides the runner's.
  uint64_t busy_ RNICD_GUARDED_BY(mutex_) = 0;
  bool probing_ RNICD_GUARDED_BY(mutex_) = false;
  Instant last_probe_ RNICD_GUARDED_BY(mutex_);
  // When the card is not waited for any more.
  std::optional<Instant> give_up_at_ RNICD_GUARDED_BY(mutex_);
  // Without a gap, so that a serial says where its request stands.
  uint64_t next_serial_ RNICD_GUARDED_BY(mutex_) = 1;
  // Only the runner removes slots, so that it may keep a reference to one without the lock.
  std::deque<Slot> slots_ RNICD_GUARDED_BY(mutex_);
  // How many of them, from the front, have begun.
  size_t begun_ RNICD_GUARDED_BY(mutex_) = 0;
  std::deque<Receive> receives_ RNICD_GUARDED_BY(mutex_);
  // The number of the first of them.
  uint64_t first_receive_ RNICD_GUARDED_BY(mutex_) = 1;
  bool reporting_receives_ RNICD_GUARDED_BY(mutex_) = false;
  // Windows that this queue pair bound, by whom they belong to: they must be gone before it.
  struct Bound {
    std::weak_ptr<Invalidatable> owner;
    uint32_t token = 0;
  };
  std::map<const Invalidatable*, Bound> bound_ RNICD_GUARDED_BY(mutex_);
  // How many there may be before those whose owner is gone are taken out.
  size_t prune_bound_at_ RNICD_GUARDED_BY(mutex_) = 64;
};

}  // namespace rnicd::provider
