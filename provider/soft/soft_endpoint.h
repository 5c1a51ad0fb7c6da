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
#include "base/mutex.h"
#include "provider/api/queue_pair.h"
#include "provider/soft/soft_nic.h"
#include "provider/soft/soft_target.h"

namespace rnicd::provider {

// One side of a connection: two queues and the one runner that executes them.
//
// Whoever gives the endpoint something to do becomes its runner, unless there is one already, and runs until nothing
// can go on. So each queue is executed and reported by one thread at a time, without a lock held. A runner that has
// moved much leaves the rest to the card's engine.
//
// A peer's runner comes in as a visitor (Enter, Leave): as long as one is inside, receives are not flushed and the
// owner is not told that all is quiet.
// Lifetime: shared by its owner, its visitors and the engine. Threads: safe; no lock is held across endpoints.
class SoftEndpoint : public std::enable_shared_from_this<SoftEndpoint> {
 public:
  // `listener` outlives Shutdown.
  static std::shared_ptr<SoftEndpoint> Create(std::shared_ptr<SoftNic> nic, uint64_t domain,
                                              const QueuePairLimits& limits, QueuePairListener& listener);

  // For the owner: see DeviceQueuePair.
  QueuePairState state() const;
  std::string address() const { return SoftFabric::AddressOf(number_); }
  absl::Status Connect(std::string_view peer_address);
  // Once Shutdown has begun, receives are QP_NOT_CONNECTED too: nobody would be told of them.
  absl::StatusOr<RemoteToken> Enqueue(WorkRequest request);
  void Run();
  void Flush();
  void Disconnect();
  void Shutdown();

  // For a peer's runner.
  enum class Door : uint8_t { kOpen, kNotYet, kClosed };
  // kOpen: Leave must follow.
  Door Enter(const std::shared_ptr<SoftEndpoint>& visitor);
  void Leave();
  // The oldest receive; nothing when none is posted: the visitor is run again when there is one.
  std::optional<WorkRequest> TakeReceive();
  void ReportReceive(const Completion& completion) { listener_.OnCompletion(WorkQueue::kReceive, completion); }
  // The peer of this number is gone, or did what ends the connection; then everything here is flushed too. Nobody but
  // the peer can do either: others may know the address and connect to it.
  void LoseConnection(uint64_t peer_number, bool fatal);

  SoftNic& nic() { return *nic_; }
  uint64_t number() const { return number_; }
  SoftAccessor accessor() const { return {.domain = domain_, .queue_pair = number_}; }

 private:
  enum class Stage : uint8_t {
    kQueued,
    // A read whose bytes are under way, then there.
    kReading,
    kLanding,
    kDone,
  };
  struct Slot {
    WorkRequest request;
    RemoteToken token;
    uint64_t serial = 0;
    Stage stage = Stage::kQueued;
    NtStatus status = NtStatus::kSuccess;
  };

  SoftEndpoint(std::shared_ptr<SoftNic> nic, uint64_t domain, const QueuePairLimits& limits,
               QueuePairListener& listener);

  // The runner's loop, and one step of it: false when nothing can go on.
  void RunOn();
  bool Step(uint64_t& moved);
  bool StopRunning();
  Slot* NextToBegin() RNICD_REQUIRES(mutex_);
  bool FlushQueues();
  void Settle(Slot& slot, NtStatus status);
  void Report(Slot& slot);
  void BeginReading(Slot& slot);
  void Land(uint64_t serial);
  void Fail();
  // `visitor` has connected here. False when there is nothing to wait for: this side has failed.
  bool Expect(const std::shared_ptr<SoftEndpoint>& visitor);
  bool IsQuiet() const RNICD_REQUIRES(mutex_);
  // Nothing begins any more, and what is under way arrives.
  void FinishTransfers();
  RemoteToken IssueToken(const WorkRequest& request);

  const std::shared_ptr<SoftNic> nic_;
  const uint64_t domain_;
  const uint64_t number_;
  const QueuePairLimits limits_;
  QueuePairListener& listener_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  QueuePairState state_ RNICD_GUARDED_BY(mutex_) = QueuePairState::kInit;
  // The other side; 0 before Connect.
  uint64_t peer_number_ RNICD_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<SoftEndpoint> peer_ RNICD_GUARDED_BY(mutex_);
  // Who connected here before this side connected, by number.
  std::map<uint64_t, std::weak_ptr<SoftEndpoint>> early_visitors_ RNICD_GUARDED_BY(mutex_);
  bool peer_lost_ RNICD_GUARDED_BY(mutex_) = false;
  bool told_peer_ RNICD_GUARDED_BY(mutex_) = false;
  bool sender_waits_ RNICD_GUARDED_BY(mutex_) = false;
  bool disconnecting_ RNICD_GUARDED_BY(mutex_) = false;
  bool shut_ RNICD_GUARDED_BY(mutex_) = false;
  bool running_ RNICD_GUARDED_BY(mutex_) = false;
  bool run_again_ RNICD_GUARDED_BY(mutex_) = false;
  // Runners that have stopped.
  uint64_t runs_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t visitors_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t next_serial_ RNICD_GUARDED_BY(mutex_) = 1;
  // Only the runner removes slots, so that it may keep a reference to one without the lock.
  std::deque<Slot> slots_ RNICD_GUARDED_BY(mutex_);
  std::deque<WorkRequest> receives_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
