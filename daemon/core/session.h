#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/post_outcome.h"
#include "base/ndk/work_request.h"
#include "base/strong_id.h"
#include "daemon/core/adapter.h"
#include "daemon/core/caller.h"
#include "daemon/core/completion_queue.h"
#include "daemon/core/event_queue.h"
#include "daemon/core/holdings.h"
#include "daemon/core/ledger.h"
#include "daemon/core/logical_mapping.h"
#include "daemon/core/memory_object.h"
#include "daemon/core/memory_region.h"
#include "daemon/core/memory_window.h"
#include "daemon/core/node.h"
#include "daemon/core/object_table.h"
#include "daemon/core/protection_domain.h"
#include "daemon/core/queue_pair.h"
#include "daemon/core/tenant.h"

namespace rnicd::core {

struct AllocateArguments {
  uint64_t size = 0;
  uint64_t page_bytes = kNdkPageBytes;
  std::optional<uint32_t> numa_node;
};

struct MemoryTicket {
  MemoryObjectId memory;
  FdTicket ticket{};
};

struct RegisterArguments {
  MemoryRegionId region;
  std::span<const MdlEntry> chain;
  uint64_t length = 0;
  // NDK_MR_FLAG_ bits, not yet checked.
  uint32_t flags = 0;
};

// How the caller of a request that may pend wants its outcome.
struct PendingChoice {
  // Return at once and report on the event stream; otherwise `done` is called.
  bool to_events = false;
  uint64_t request_context = 0;
};

struct InitializeArguments {
  MemoryRegionId region;
  uint32_t max_pages = 0;
  bool remote_access = false;
};

struct BuildLamArguments {
  AdapterId adapter;
  std::span<const MdlEntry> chain;
  uint64_t length = 0;
  // Size in bytes of the caller's NDK_LOGICAL_ADDRESS_MAPPING; empty means large enough.
  std::optional<uint64_t> lam_size;
};

struct BuiltLam {
  LogicalMappingId id;
  // Logical address of the first page; the others follow.
  LogicalAddress first;
  uint64_t pages = 0;
  uint32_t fbo = 0;
};

struct CreateQpArguments {
  ProtectionDomainId domain;
  CompletionQueueId receive_queue;
  CompletionQueueId initiator_queue;
  uint64_t context = 0;
  provider::QueuePairLimits limits;
};

// Longest time that a poll of a completion queue waits.
inline constexpr std::chrono::milliseconds kCqWaitMax{60'000};

// Result of a poll that may wait.
struct PolledCq {
  // Empty: the poll waits.
  std::optional<std::vector<Completion>> results;
  // Ends the wait without completions; does nothing once it has ended. Null when nothing waits.
  std::function<void()> end;
};

using Done = std::function<void(const absl::Status&)>;
using RegisterDone = std::function<void(const absl::StatusOr<Registration>&)>;
using AllocateDone = std::function<void(const absl::StatusOr<MemoryTicket>&)>;

// Whether a request has finished. kPending: its outcome comes later, exactly once, as PendingChoice specifies.
enum class Progress : uint8_t { kDone, kPending };

// One client process's lease on everything it owns. Every object is found through the session that owns it, so that the
// ids of another session name nothing.
// Lifetime: shared by its connections, the registry and running requests. Ends once: when it is closed, when its
// process exits, when its last connection closes; LIFETIMES.md gives the order of destruction.
// Threads:  safe. Every call but End and the ones marked const needs a Guard, which delays the end while it exists.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // A request in progress: the session is not torn down while a Guard exists.
  class Guard {
   public:
    Guard(Guard&& other) noexcept : session_(std::move(other.session_)) {}
    Guard& operator=(Guard&&) = delete;
    ~Guard();

   private:
    friend class Session;
    explicit Guard(std::shared_ptr<Session> session) : session_(std::move(session)) {}
    std::shared_ptr<Session> session_;
  };

  // `charge` counts the session itself for its tenant.
  Session(Node& node, SessionId id, Caller owner, std::string label, Charge charge, std::shared_ptr<Tenant> tenant);

  // Counts a call against the rates of the session and its tenant. If refused, `wait` is the time until a call would
  // pass.
  // Errors: RATE_LIMITED.
  absl::Status AdmitCall(std::chrono::nanoseconds* wait);

  // Errors: SESSION_ENDING.
  absl::StatusOr<Guard> Begin();

  // Adapters. Source: OPEN_NDK_ADAPTER_HANDLER, NDK_FN_QUERY_ADAPTER_INFO.
  absl::StatusOr<AdapterId> OpenAdapter(const std::string& name, NdkVersion version);
  absl::StatusOr<NdkAdapterInfo> QueryAdapterInfo(AdapterId id);
  absl::StatusOr<Progress> CloseAdapter(AdapterId id, const Done& done);

  // Memory objects. An AllocateMemory that is not refused at once reports through `done`, from a worker.
  absl::Status AllocateMemory(const AllocateArguments& arguments, AllocateDone done);
  absl::StatusOr<MemoryTicket> ImportMemory(uint64_t size);
  absl::StatusOr<std::shared_ptr<MemoryObject>> FindMemory(MemoryObjectId id);
  // Sealing maps every page, and populates holes; where that takes long it runs on a worker and reports through `done`.
  absl::StatusOr<Progress> SealMemory(const std::shared_ptr<MemoryObject>& memory, const Done& done);
  // Unmapping much memory takes long: it then runs on a worker and reports through `done`.
  absl::StatusOr<Progress> ReleaseMemory(MemoryObjectId id, const Done& done);
  // Releases the object synchronously after a failed import.
  void DropMemory(MemoryObjectId id);

  // Protection domains and regions.
  absl::StatusOr<ProtectionDomainId> CreatePd(AdapterId id);
  absl::StatusOr<Progress> ClosePd(ProtectionDomainId id, PendingChoice choice, const Done& done);
  absl::StatusOr<MemoryRegionId> CreateMr(ProtectionDomainId id, bool fast_register);
  // A registration that has finished returns its value; an empty result means that it pends.
  absl::StatusOr<std::optional<Registration>> RegisterMr(const RegisterArguments& arguments, PendingChoice choice,
                                                         const RegisterDone& done);
  absl::StatusOr<Progress> DeregisterMr(MemoryRegionId id, PendingChoice choice, const Done& done);
  absl::StatusOr<Progress> CloseMr(MemoryRegionId id, PendingChoice choice, const Done& done);
  absl::StatusOr<LocalToken> GetLocalToken(MemoryRegionId id);
  absl::StatusOr<RemoteToken> GetRemoteToken(MemoryRegionId id);
  absl::StatusOr<Progress> InitializeFastRegisterMr(const InitializeArguments& arguments, PendingChoice choice,
                                                    const Done& done);

  // Logical address mappings.
  absl::StatusOr<BuiltLam> BuildLam(const BuildLamArguments& arguments);
  absl::Status ReleaseLam(LogicalMappingId id);

  // Completion queues.
  absl::StatusOr<CompletionQueueId> CreateCq(AdapterId id, uint32_t depth, uint64_t context);
  absl::Status ResizeCq(CompletionQueueId id, uint32_t depth);
  absl::Status ArmCq(CompletionQueueId id, CqNotifyType type);
  absl::StatusOr<std::vector<Completion>> GetCqResults(CompletionQueueId id, uint32_t max);
  // As GetCqResults, but where that returns none, waits for the first completion: up to `wait_max`, which is above 0
  // and at most kCqWaitMax. An empty result means that it waits; `done` is then called once, without completions when
  // the time is over, and `end` may be called to stop the wait earlier. Does not delay the end of the session. Errors:
  // FIELD_OUT_OF_RANGE, QUOTA_PENDING_REQUESTS; of `done`: CQ_OVERRUN, OBJECT_CLOSING, SESSION_ENDING.
  absl::StatusOr<PolledCq> PollCq(CompletionQueueId id, uint32_t max, std::chrono::milliseconds wait_max,
                                  CqWait::Done done);
  absl::StatusOr<Progress> CloseCq(CompletionQueueId id, PendingChoice choice, const Done& done);

  // Queue pairs and what is posted to them.
  absl::StatusOr<QueuePairId> CreateQp(const CreateQpArguments& arguments);
  struct QueuePairView {
    provider::QueuePairState state = provider::QueuePairState::kInit;
    std::string address;
  };
  absl::StatusOr<QueuePairView> QueryQp(QueuePairId id);
  absl::Status ConnectQp(QueuePairId id, std::string_view peer_address);
  absl::Status DisconnectQp(QueuePairId id);
  absl::Status Flush(QueuePairId id);
  absl::StatusOr<Progress> CloseQp(QueuePairId id, PendingChoice choice, const Done& done);
  absl::StatusOr<PostOutcome> Post(QueuePairId id, std::span<const WorkRequest> requests);

  // Memory windows, and the token for logical addresses.
  absl::StatusOr<MemoryWindowId> CreateMw(ProtectionDomainId id);
  absl::StatusOr<RemoteToken> GetRemoteTokenFromMw(MemoryWindowId id);
  absl::StatusOr<Progress> CloseMw(MemoryWindowId id, PendingChoice choice, const Done& done);
  absl::StatusOr<LocalToken> GetPrivilegedMemoryRegionToken(ProtectionDomainId id);

  // Ends the session: refuses new requests, waits for running ones, reclaims everything on a reaper, then calls
  // `on_ended`. Only the first cause counts; every `on_ended` is called. May be called from any thread, at any time.
  void End(EndCause cause, std::function<void(const Reclaimed&)> on_ended);

  SessionId id() const { return id_; }
  const Caller& owner() const { return owner_; }
  const std::string& label() const { return label_; }
  Instant opened() const { return opened_; }
  const Tenant& tenant() const { return *tenant_; }
  const Ledger& ledger() const { return *ledger_; }
  EventQueue& events() { return events_; }
  bool ending() const;
  // True when everything has been reclaimed; only this object remains of the session.
  bool ended() const;
  // Cause of the end; meaningless before `ended`.
  EndCause end_cause() const;
  std::vector<std::pair<MemoryRegionId, RegionView>> ViewRegions() const;
  void AddTo(Holdings& holdings) const;

 private:
  // Tables are named by member pointers: the thread safety analysis would take a reference to one for an access without
  // the lock.
  absl::StatusOr<std::shared_ptr<MemoryObject>> NewMemory(uint64_t size);
  MemoryTicket PublishMemory(const std::shared_ptr<MemoryObject>& memory, FdDirection direction);
  bool IsSlow(uint64_t bytes) const { return bytes >= node_.limits.pending_threshold_bytes; }
  // A registration that was admitted. Without `report` it must be finished synchronously.
  struct RegisterJob {
    std::shared_ptr<MemoryRegion> region;
    MemoryRegion::RegisterRequest request;
    RegisterDone report;
  };
  absl::StatusOr<RegisterJob> AdmitRegister(const RegisterArguments& arguments, PendingChoice choice,
                                            const RegisterDone& done);
  absl::StatusOr<std::shared_ptr<Charge>> TakeOne(Resource resource);
  // Returns the callback that reports a completion. `charge` is kept until the completion was reported and fetched.
  RegisterDone ReportRegister(MemoryRegionId id, PendingChoice choice, std::shared_ptr<Charge> charge,
                              const RegisterDone& done);
  Done Report(RequestKind kind, uint64_t object_id, PendingChoice choice, std::shared_ptr<Charge> charge,
              const Done& done);
  // A queue pair and the hold that keeps it from being closed meanwhile.
  struct HeldQueuePair {
    std::shared_ptr<QueuePair> pair;
    Closable::Hold hold;
  };
  absl::StatusOr<HeldQueuePair> HoldQueuePair(QueuePairId id);
  // Ends the queue pairs of a dead queue, on a worker.
  void EndQueuePairsOf(const std::shared_ptr<CompletionQueue>& queue);
  absl::StatusOr<RemoteToken> PostOne(QueuePair& pair, const class WorkRequestResolver& resolver,
                                      const WorkRequest& request);
  // Errors: DAEMON_DRAINING.
  absl::Status CheckNotDraining() const;
  // Work for a worker. Called once: with ok, or with SESSION_ENDING if the session has ended before the work began; it
  // then undoes what its request has begun, and reports that status.
  using Job = std::function<void(const absl::Status& start)>;
  // Queues the job with the session held.
  void RunOnWorker(Guard guard, Job job);
  void RunHeld(Executor& executor, const std::shared_ptr<Guard>& held, Job job);
  // A memory object that is being populated, and who is told when that has ended.
  struct Populating {
    std::shared_ptr<Guard> held;
    std::shared_ptr<MemoryObject> memory;
    std::function<void(std::shared_ptr<MemoryObject> memory, const absl::Status& status)> report;
  };
  void PopulateNext(Populating job);
  void QueuePopulating(Populating job);
  // Counts what a request costs beyond itself against the rates of the session and its tenant.
  void CountBytes(uint64_t bytes, uint64_t per_request);
  JobOwner job_owner() const { return {.number = tenant_->number(), .group = id_.value}; }
  // Cancels the queued jobs of a session that is ending.
  void CancelQueued();

  void EndGuard();
  void TearDown();
  Reclaimed Reclaim(EndCause cause);

  Node& node_;
  const SessionId id_;
  const Caller owner_;
  const std::string label_;
  const Instant opened_;
  const std::shared_ptr<Tenant> tenant_;
  Charge charge_;
  const std::shared_ptr<Ledger> ledger_;
  const PinBook pins_;
  RateLimiter rate_;
  EventQueue events_;

  ObjectTable<AdapterId, Adapter> adapters_;
  ObjectTable<ProtectionDomainId, ProtectionDomain> domains_;
  ObjectTable<MemoryObjectId, MemoryObject> memories_;
  ObjectTable<MemoryRegionId, MemoryRegion> regions_;
  ObjectTable<LogicalMappingId, LogicalMapping> mappings_;
  LogicalAddressSpace addresses_;
  ObjectTable<CompletionQueueId, CompletionQueue> completion_queues_;
  ObjectTable<QueuePairId, QueuePair> queue_pairs_;
  ObjectTable<MemoryWindowId, MemoryWindow> windows_;

  mutable Mutex life_mutex_;
  uint64_t running_ RNICD_GUARDED_BY(life_mutex_) = 0;
  bool ending_ RNICD_GUARDED_BY(life_mutex_) = false;
  bool ended_ RNICD_GUARDED_BY(life_mutex_) = false;
  EndCause cause_ RNICD_GUARDED_BY(life_mutex_) = EndCause::kClosed;
  Reclaimed reclaimed_ RNICD_GUARDED_BY(life_mutex_);
  std::vector<std::function<void(const Reclaimed&)>> on_ended_ RNICD_GUARDED_BY(life_mutex_);
};

}  // namespace rnicd::core
