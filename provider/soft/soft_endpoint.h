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
// A thread that gives the endpoint work becomes its runner, unless another thread already is, and runs until no request
// can make progress. So each queue is executed and reported by one thread at a time, without a lock held. A runner that
// has moved many bytes hands the rest to the card's engine.
//
// A peer's runner enters as a visitor (Enter, Leave). While a visitor is inside, receives are not flushed and
// Disconnect does not return.
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
  // Once Shutdown has begun, receives are QP_NOT_CONNECTED too: their completions could no longer be reported.
  absl::StatusOr<RemoteToken> Enqueue(WorkRequest request);
  void Run();
  void Flush();
  void Disconnect();
  void Shutdown();

  // For a peer's runner.
  enum class Admission : uint8_t { kAdmitted, kNotYet, kRefused };
  // kAdmitted: Leave must follow.
  Admission Enter(const std::shared_ptr<SoftEndpoint>& visitor);
  void Leave();
  // Removes the oldest receive. Returns nullopt when none is posted; the visitor is run again when one is.
  std::optional<WorkRequest> TakeReceive();
  void ReportReceive(const Completion& completion) { listener_.OnCompletion(WorkQueue::kReceive, completion); }
  // The peer with this number has ended the connection; with `fatal` it made an access that fails this side too, and
  // both queues are flushed. Ignored unless the number is that of the connected peer, because other endpoints may know
  // the address and connect to it.
  void LoseConnection(uint64_t peer_number, bool fatal);

  SoftNic& nic() { return *nic_; }
  uint64_t number() const { return number_; }
  SoftAccessor accessor() const { return {.domain = domain_, .queue_pair = number_}; }

 private:
  enum class Stage : uint8_t {
    kQueued,
    // A read whose bytes are in transit.
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
    bool refused_by_peer = false;
  };

  SoftEndpoint(std::shared_ptr<SoftNic> nic, uint64_t domain, const QueuePairLimits& limits,
               QueuePairListener& listener);

  // The runner's loop, and one step of it; Step returns false when no request can make progress.
  void RunLoop();
  bool Step(uint64_t& moved);
  bool StopRunning();
  Slot* NextToBegin() RNICD_REQUIRES(mutex_);
  bool FlushQueues();
  void Finish(Slot& slot, NtStatus status);
  void Report(Slot& slot);
  void BeginReading(Slot& slot);
  void Land(uint64_t serial);
  void Fail();
  // Records that `visitor` has connected to this endpoint. False when this side has failed, so the visitor need not
  // wait.
  bool Expect(const std::shared_ptr<SoftEndpoint>& visitor);
  bool IsQuiet() const RNICD_REQUIRES(mutex_);
  // Stops new requests and lets transfers in progress complete.
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
  // Number of the peer endpoint; 0 before Connect.
  uint64_t peer_number_ RNICD_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<SoftEndpoint> peer_ RNICD_GUARDED_BY(mutex_);
  // Endpoints that connected here before this side connected, by number.
  std::map<uint64_t, std::weak_ptr<SoftEndpoint>> early_visitors_ RNICD_GUARDED_BY(mutex_);
  bool peer_lost_ RNICD_GUARDED_BY(mutex_) = false;
  bool notified_peer_ RNICD_GUARDED_BY(mutex_) = false;
  bool sender_waits_ RNICD_GUARDED_BY(mutex_) = false;
  bool disconnecting_ RNICD_GUARDED_BY(mutex_) = false;
  bool shut_ RNICD_GUARDED_BY(mutex_) = false;
  bool running_ RNICD_GUARDED_BY(mutex_) = false;
  bool run_again_ RNICD_GUARDED_BY(mutex_) = false;
  // Number of runners that have stopped.
  uint64_t runs_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t visitors_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t next_serial_ RNICD_GUARDED_BY(mutex_) = 1;
  // Initiator requests. Only the runner removes slots, so it may keep a reference to one without the lock.
  std::deque<Slot> slots_ RNICD_GUARDED_BY(mutex_);
  std::deque<WorkRequest> receives_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
