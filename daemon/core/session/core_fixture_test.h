#pragma once

// Shared fixture of core's unit tests: a node on the software card whose system calls and device calls fail on demand,
// and an owner that acts as a client would.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/manual_clock_fake.h"
#include "base/mutex.h"
#include "base/secrets/random.h"
#include "base/status.h"
#include "base/system/faulty_os.h"
#include "base/waiting_fixture.h"
#include "daemon/core/session/session.h"
#include "daemon/core/session/test_values_test.h"
#include "daemon/core/session/wired_node_test.h"
#include "provider/decorator/fault_injecting.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::core {

MATCHER_P(FailsWith, reason, std::string(RowOf(reason).name)) {
  *result_listener << "which failed with " << RowOf(ErrorInfoOf(arg).reason).name << " of " << ErrorInfoOf(arg).field;
  return FailedWith(arg, reason);
}

MATCHER_P2(FailsAt, reason, field, std::string(RowOf(reason).name) + " of " + field) {
  *result_listener << "which failed with " << RowOf(ErrorInfoOf(arg).reason).name << " of " << ErrorInfoOf(arg).field;
  return FailedWith(arg, reason) && ErrorInfoOf(arg).field == field;
}

// A copy that shares nothing with the thread it came from: abseil's reference counts are sound, but the thread
// sanitizer cannot see into the library and would report a race.
template <typename T>
T Unshared(T value) {
  return value;
}
inline absl::Status Unshared(const absl::Status& status) {
  return status.ok() ? status : MakeError(ErrorInfoOf(status));
}
template <typename T>
absl::StatusOr<T> Unshared(absl::StatusOr<T> outcome) {
  return outcome.ok() ? std::move(outcome) : absl::StatusOr<T>(Unshared(outcome.status()));
}

// One value that another thread will set.
// Threads: safe.
template <typename T>
class Awaited {
 public:
  void Set(const T& value) {
    MutexLock lock(mutex_);
    value_.emplace(Unshared(value));
    ++times_;
    changed_.NotifyAll();
  }
  // Empty when the value is not set in time.
  std::optional<T> Get() {
    const Instant deadline = std::chrono::steady_clock::now() + kTimeout;
    MutexLock lock(mutex_);
    while (!value_.has_value() && changed_.WaitUntil(mutex_, deadline)) {
    }
    return value_.has_value() ? std::optional<T>(Unshared(*value_)) : std::nullopt;
  }
  int times() const {
    MutexLock lock(mutex_);
    return times_;
  }
  // Waits until it was set more often than that. False when it is not in time.
  bool WaitForMore(int times) {
    const Instant deadline = std::chrono::steady_clock::now() + kTimeout;
    MutexLock lock(mutex_);
    while (times_ <= times && changed_.WaitUntil(mutex_, deadline)) {
    }
    return times_ > times;
  }

 private:
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::optional<T> value_ RNICD_GUARDED_BY(mutex_);
  int times_ RNICD_GUARDED_BY(mutex_) = 0;
};

// A copy of a reported decision.
struct RecordedDecision {
  std::string what;
  // Absent when the daemon itself decided.
  std::optional<ProcessKey> process;
  std::string tenant;
  std::shared_ptr<const Workload> workload;
  SessionId session;
  std::string object;
  // Reason of the refusal; empty when it was allowed.
  std::optional<ErrorReason> refused;
  std::string note;
};

// Counts what core reports.
// Threads: safe.
class RecordingObserver final : public Observer {
 public:
  struct Counts {
    uint64_t registered = 0;
    uint64_t deregistered = 0;
    uint64_t deregistrations_failed = 0;
    uint64_t local_tokens = 0;
    uint64_t remote_tokens = 0;
    uint64_t opened = 0;
    uint64_t ended = 0;
    EndCause cause = EndCause::kClosed;
    Reclaimed reclaimed;
    std::vector<absl::Status> registration_failures;
    std::map<std::string, uint64_t> revoked;
    std::vector<RecordedDecision> decisions;
  };
  Counts counts() const {
    MutexLock lock(mutex_);
    return counts_;
  }

  void Observe(const Observation& observation) override {
    observation.Visit([this](const auto& event) { Record(event); });
  }

 private:
  void Record(const RpcEnded& /*rpc*/) {}
  void Record(const ConnectionRefused& /*refused*/) {}
  void Record(const FastRegisterRefused& /*refused*/) {}
  void Record(const WorkRequestCompleted& /*completed*/) {}
  void Record(const SessionOpened& /*opened*/) {
    MutexLock lock(mutex_);
    ++counts_.opened;
  }
  void Record(const SessionEnded& ended) {
    MutexLock lock(mutex_);
    ++counts_.ended;
    counts_.cause = ended.cause;
    counts_.reclaimed = ended.reclaimed;
  }
  void Record(const RegistrationEnded& registration) {
    MutexLock lock(mutex_);
    if (registration.status.ok()) {
      ++counts_.registered;
    } else {
      counts_.registration_failures.push_back(registration.status);
    }
  }
  void Record(const DeregistrationEnded& deregistration) {
    MutexLock lock(mutex_);
    ++(deregistration.status.ok() ? counts_.deregistered : counts_.deregistrations_failed);
  }
  void Record(const TokensIssued& issued) {
    MutexLock lock(mutex_);
    counts_.local_tokens += issued.local;
    counts_.remote_tokens += issued.remote;
  }
  void Record(const TokensRevoked& revoked) {
    MutexLock lock(mutex_);
    counts_.revoked[std::string(revoked.cause)] += revoked.pairs;
  }
  void Record(const Decision& decision) {
    MutexLock lock(mutex_);
    counts_.decisions.push_back(
        {.what = std::string(decision.what),
         .process = decision.caller == nullptr ? std::nullopt : std::optional(decision.caller->process),
         .tenant = std::string(decision.tenant),
         .workload = decision.workload,
         .session = decision.session,
         .object = decision.object,
         .refused = decision.status.ok() ? std::nullopt : std::optional(ErrorInfoOf(decision.status).reason),
         .note = std::string(decision.note)});
  }

  mutable Mutex mutex_;
  Counts counts_ RNICD_GUARDED_BY(mutex_);
};

// A pin book for memory objects without a session: `owner` and its parents are charged.
inline PinBook PinsOf(const std::shared_ptr<Ledger>& owner) {
  return {.session = std::make_shared<PinnedFiles>(std::make_shared<Ledger>(Limits{}, nullptr), false),
          .tenant = std::make_shared<PinnedFiles>(owner, true)};
}

// A client's own file, as it would import it.
inline UniqueFd MemoryFile(uint64_t size) {
  absl::StatusOr<UniqueFd> file = SystemOs().CreateMemoryFile(size, kPage);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

inline bool IsOpen(int fd) { return SystemOs().Duplicate(fd).ok(); }

// For objects without a node.
inline LingeringMemory& SharedLingering() {
  static FileWatch* const watch = NewFileWatch()->release();
  static auto* const lingering = new LingeringMemory(*watch);
  return *lingering;
}

inline std::shared_ptr<MemoryObject> UnchargedMemory(Os& os, uint64_t size, PinBook pins) {
  return std::make_shared<MemoryObject>(os, SharedLingering(), size, std::move(pins), MemoryCharges());
}

struct WorldOptions {
  provider::SoftOptions soft;
  NodeLimits limits;
  // Limits of each uid when there is no policy.
  Limits uid_limits;
  std::optional<Policy> policy;
  uint32_t workers = 2;
  std::chrono::milliseconds ticket_lifetime{30000};
};

// Seals allocated memory as its owner does: after it has fetched the file.
inline absl::Status FetchAndSeal(MemoryObject& memory) {
  RNICD_RETURN_IF_ERROR(memory.DuplicateFile().status());
  return memory.Seal();
}

// Options under which requests of two pages or more run on a worker.
inline WorldOptions SlowFromTwoPages() {
  WorldOptions options;
  options.limits.pending_threshold_bytes = 2 * kPage;
  return options;
}

// The dependencies of the node of a World.
struct WorldGround {
  explicit WorldGround(const WorldOptions& options)
      : soft(options.soft, random),
        provider(soft, plan),
        workers(std::make_unique<WorkerPool>(options.workers)),
        reapers(std::make_unique<WorkerPool>(1)) {}

  FaultyOs os{SystemOs()};
  ManualClock clock;
  KernelRandom random;
  provider::FaultPlan plan;
  provider::SoftProvider soft;
  provider::FaultInjectingProvider provider;
  RecordingObserver observer;
  std::unique_ptr<WorkerPool> workers;
  std::unique_ptr<WorkerPool> reapers;
};

// A node and its registry. Sessions a test holds go before it.
class World : public WorldGround, public WiredNode {
 public:
  explicit World(const WorldOptions& options = {})
      : WorldGround(options),
        WiredNode({.os = os,
                   .clock = clock,
                   .random = random,
                   .provider = provider,
                   .observer = observer,
                   .workers = *workers,
                   .reapers = *reapers,
                   .limits = options.limits,
                   .policy = options.policy.value_or(OneTenantForEachUid(options.uid_limits)),
                   .ticket_lifetime = options.ticket_lifetime}) {}
  ~World() { Stop(); }

  // Ends every session and joins the threads.
  void Stop() {
    if (workers != nullptr) {
      registry.Drain(EndCause::kDaemonStopping);
      EXPECT_TRUE(registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kTimeout)) << "a session never ended";
      workers.reset();
      reapers.reset();
    }
  }

  // All counts of the node that are not zero; empty when nothing is held.
  std::string Held() const { return HeldBy(*ledger); }

  // Ends the session and waits until everything is reclaimed.
  Reclaimed End(const std::shared_ptr<Session>& session, EndCause cause = EndCause::kClosed) {
    auto ended = std::make_shared<Awaited<Reclaimed>>();
    registry.End(session, cause, [ended](const Reclaimed& reclaimed) { ended->Set(reclaimed); });
    const std::optional<Reclaimed> reclaimed = ended->Get();
    EXPECT_TRUE(reclaimed.has_value()) << "the session never ended";
    return reclaimed.value_or(Reclaimed{});
  }
};

// A process that never exits, or has exited.
class FakeProcess final : public ProcessHandle {
 public:
  explicit FakeProcess(bool exited) : exited_(exited) {}
  bool HasExited(std::chrono::milliseconds) const override { return exited_; }

 private:
  const bool exited_;
};

inline Caller CallerNumbered(uint64_t number, uint32_t uid = 1000) {
  return Caller{.process = {.high = 7, .low = number},
                .pid = static_cast<int32_t>(number),
                .uid = uid,
                .gid = uid,
                .role = Role::kWorkload,
                .handle = std::make_shared<FakeProcess>(false)};
}

// A client of one session: each call does one thing and expects it to work, unless it returns a status.
class Owner {
 public:
  explicit Owner(World& world, uint64_t number = 1, uint32_t uid = 1000) {
    auto opened = world.registry.Open(CallerNumbered(number, uid), "test");
    EXPECT_TRUE(opened.ok()) << opened.status();
    session = *opened;
  }
  explicit Owner(std::shared_ptr<Session> opened) : session(std::move(opened)) {}

  absl::StatusOr<MemoryTicket> TryAllocate(const AllocateArguments& arguments) {
    auto answer = std::make_shared<Awaited<absl::StatusOr<MemoryTicket>>>();
    const MaybePending<MemoryTicket> begun =
        BeginAllocate(arguments, [answer](const absl::StatusOr<MemoryTicket>& outcome) { answer->Set(outcome); });
    if (!begun.pending()) {
      return begun.outcome();
    }
    return answer->Get().value_or(absl::DeadlineExceededError("AllocateMemory never answered"));
  }

  MaybePending<MemoryTicket> BeginAllocate(const AllocateArguments& arguments, const Done<MemoryTicket>& done) {
    RNICD_ASSIGN_OR_RETURN(const SessionGuard held, session->Begin());
    return held.memory().Allocate(arguments, done);
  }

  // A memory object that is allocated and sealed.
  MemoryObjectId Memory(uint64_t pages) {
    auto allocated = TryAllocate({.size = pages * kPage});
    EXPECT_TRUE(allocated.ok()) << allocated.status();
    if (!allocated.ok()) {
      return {};
    }
    EXPECT_TRUE(FetchAndSeal(**session->Begin()->memory().Find(allocated->memory)).ok());
    return allocated->memory;
  }

  AdapterId Adapter() {
    auto id = session->Begin()->adapters().Open("soft0", {1, 2});
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(AdapterId{});
  }

  ProtectionDomainId Domain() { return Domain(Adapter()); }
  ProtectionDomainId Domain(AdapterId adapter) {
    auto id = session->Begin()->domains().Create(adapter);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(ProtectionDomainId{});
  }

  MemoryRegionId Region() { return Region(Domain()); }
  MemoryRegionId Region(ProtectionDomainId domain) {
    auto id = session->Begin()->regions().Create(domain, false);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(MemoryRegionId{});
  }

  // Registers the range from the start of the memory, at an address of its own; waits for the outcome.
  absl::StatusOr<Registration> Register(MemoryRegionId region, MemoryObjectId memory, uint64_t bytes) {
    auto answer = std::make_shared<Awaited<absl::StatusOr<Registration>>>();
    auto begun = BeginRegister(region, memory, bytes, {},
                               [answer](const absl::StatusOr<Registration>& outcome) { answer->Set(outcome); });
    if (!begun.ok()) {
      return begun.status();
    }
    return begun.pending() ? answer->Get().value_or(absl::DeadlineExceededError("RegisterMr never answered"))
                           : begun.outcome();
  }

  MaybePending<Registration> BeginRegister(MemoryRegionId region, MemoryObjectId memory, uint64_t bytes,
                                           PendingChoice choice, const Done<Registration>& done) {
    const MdlEntry entry{
        .memory_id = memory, .byte_offset = 0, .byte_count = bytes, .virtual_address = {0x7f0000000000}};
    RNICD_ASSIGN_OR_RETURN(const SessionGuard held, session->Begin());
    return held.regions().Register(
        {.region = region, .chain = {&entry, 1}, .length = bytes, .flags = kMrFlagRemoteWrite}, choice, done);
  }

  // Waits for the outcome of DeregisterMr, CloseMr, ClosePd, ... given as a function of `done`.
  static absl::Status Await(const std::function<MaybePending<>(const Done<>&)>& request) {
    auto answer = std::make_shared<Awaited<absl::Status>>();
    auto progress = request([answer](const absl::Status& status) { answer->Set(status); });
    if (!progress.ok()) {
      return progress.status();
    }
    return progress.pending() ? answer->Get().value_or(absl::DeadlineExceededError("never answered"))
                              : progress.outcome();
  }
  absl::Status Deregister(MemoryRegionId region) {
    return Await([&](const Done<>& done) -> MaybePending<> {
      RNICD_ASSIGN_OR_RETURN(const SessionGuard held, session->Begin());
      return held.regions().Deregister(region, {}, done);
    });
  }
  absl::Status Close(MemoryRegionId region) {
    return Await([&](const Done<>& done) -> MaybePending<> {
      RNICD_ASSIGN_OR_RETURN(const SessionGuard held, session->Begin());
      return held.regions().Close(region, {}, done);
    });
  }

  std::shared_ptr<Session> session;
};

// Keeps every worker of a pool busy until it is destroyed or released.
class BusyWorkers {
 public:
  // Each job has an owner of its own, because one owner does not get all workers.
  BusyWorkers(WorkerPool& pool, uint32_t workers) {
    for (uint32_t index = 0; index < workers; ++index) {
      pool.PostFor(UINT64_MAX - index, [barrier = barrier_] { barrier->Pass(); });
    }
  }
  ~BusyWorkers() { Release(); }
  void Release() { barrier_->Open(); }

 private:
  std::shared_ptr<Barrier> barrier_ = std::make_shared<Barrier>();
};

inline WorldOptions WithSessionLimit(Resource resource, uint64_t limit) {
  WorldOptions options;
  options.limits.session[resource] = limit;
  return options;
}

inline void ExpectFigures(const absl::Status& status, ErrorReason reason, uint64_t limit, uint64_t used,
                          uint64_t requested) {
  EXPECT_THAT(status, FailsWith(reason));
  const ErrorInfo info = ErrorInfoOf(status);
  EXPECT_EQ(info.limit, limit);
  EXPECT_EQ(info.used, used);
  EXPECT_EQ(info.requested, requested);
}

}  // namespace rnicd::core
