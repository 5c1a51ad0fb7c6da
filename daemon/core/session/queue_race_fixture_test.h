#pragma once

// State of the race over queues: tenants with every object they ever had, their posted requests, and the outcomes.
//
// The card is threads here, so two transfers must never touch the same bytes. Each queue pair has its own eight bytes
// in every page: a slice of four for what it sends, reads and writes, and one of four for what it receives. Reads come
// from the end of a page, where no thread writes.

#include <algorithm>
#include <set>

#include "daemon/core/queue/queue_fixture_test.h"
#include "daemon/core/session/race_fixture_test.h"

namespace rnicd::core {

inline constexpr uint64_t kPages = 4;
inline constexpr uint64_t kSlice = 4;
inline constexpr uint64_t kReadSource = 3072;
inline constexpr uint64_t kMaxPairs = kReadSource / (2 * kSlice);
inline constexpr uint32_t kDeepQueue = 16384;

struct RacingPair {
  QueuePairId id;
  // Number of the pair; selects its slices.
  uint64_t number = 0;
  // Completes to the queue that is never closed and never full.
  bool deep = false;
  // Slot of the peer's tenant.
  size_t peer_slot = 0;
};
struct FastRegion {
  MemoryRegionId id;
};
struct RegisteredRegion {
  MemoryRegionId id;
  LocalToken local;
  RemoteToken remote;
};

// Address of the slice that `pair` may use, in a random page.
inline uint64_t OwnAddress(const RacingPair& pair, bool receive, Random& random) {
  return kRegionBase + random() % kPages * kPage + (2 * pair.number + (receive ? 1 : 0)) * kSlice;
}

// A session, its first objects, and everything it ever had. Shared by all threads.
// Threads: safe.
class QueueTenant : public Memories<CompletionQueueId, RacingPair, FastRegion, RegisteredRegion, BuiltLam,
                                    MemoryWindowId, MemoryObjectId, RemoteToken> {
 public:
  explicit QueueTenant(std::shared_ptr<Session> open) : session(std::move(open)) {
    adapter = session->Begin()->adapters().Open("soft0", {1, 2}).value_or(AdapterId{});
    domain = session->Begin()->domains().Create(adapter).value_or(ProtectionDomainId{});
    absl::StatusOr<CompletionQueueId> created = MakeError(ErrorReason::DEVICE_FAILED);
    while (!created.ok()) {
      created = session->Begin()->queues().Create(adapter, kDeepQueue, 0);  // A planned failure may interfere.
    }
    queue = *created;
    Remember(queue);
  }

  // Bytes reserved for a pair: in a normal region, a fast one, or none at all.
  Sges OwnSges(const SessionGuard& held, const RacingPair& pair, bool receive, Random& random) const {
    LocalToken token = Any<RegisteredRegion>(random).local;
    switch (random() % 8) {
      case 0:
        return {};
      case 1:
        token = held.regions().GetLocalToken(Any<FastRegion>(random).id).value_or(LocalToken{});
        break;
      default:
        break;
    }
    return {{.address = OwnAddress(pair, receive, random), .length = kSlice, .token = token}};
  }
  // A token this tenant may have sent to a peer: mostly a live one.
  RemoteToken SentToken(Random& random) const {
    return random() % 4 == 0 ? Any<RemoteToken>(random) : Any<RegisteredRegion>(random).remote;
  }
  // `reach`: the token the peer sent. `pages` must outlive the request.
  WorkRequest AnyRequest(const SessionGuard& held, const RacingPair& pair, RemoteToken reach,
                         std::vector<uint64_t>& pages, Random& random) const {
    const bool remote_half = random() % 2 == 0;
    switch (random() % 8) {
      case 0:
        return Receive(OwnSges(held, pair, /*receive=*/true, random));
      case 1:
        return Send(OwnSges(held, pair, /*receive=*/false, random), remote_half ? kOpFlagSolicit : 0);
      case 2:
        return SendAndInvalidate(reach);
      case 3:
        return Write(OwnSges(held, pair, /*receive=*/false, random), OwnAddress(pair, /*receive=*/false, random),
                     reach);
      case 4:
        return Read(OwnSges(held, pair, /*receive=*/false, random),
                    kRegionBase + random() % kPages * kPage + kReadSource, reach,
                    random() % 8 == 0 ? kOpFlagReadLocalInvalidate : 0);
      case 5:
        return AnyFastRegister(pages, random);
      case 6:
        return AnyBind(random);
      default:
        return remote_half ? Invalidate(Any<FastRegion>(random).id) : Invalidate(Any<MemoryWindowId>(random));
    }
  }
  WorkRequest AnyFastRegister(std::vector<uint64_t>& pages, Random& random) const {
    pages = PagesOf(Any<BuiltLam>(random));
    std::shuffle(pages.begin(), pages.end(), random);
    return FastRegister(Any<FastRegion>(random).id, pages, kRemoteRights);
  }
  WorkRequest AnyBind(Random& random) const {
    return Bind(Any<RegisteredRegion>(random).id, Any<MemoryWindowId>(random), kPages * kPage, kRemoteRights);
  }

  const std::shared_ptr<Session> session;
  AdapterId adapter;
  ProtectionDomainId domain;
  CompletionQueueId queue;
};

// The outcome of every request.
// Threads: safe.
class Posts {
 public:
  struct Record {
    SessionId session;
    bool silent = false;
    bool deep = false;
    bool accepted = false;
    int completions = 0;
  };
  // The request's context.
  uint64_t Offer(Record record) {
    MutexLock lock(mutex_);
    records_.push_back(record);
    return records_.size() - 1;
  }
  void Accept(uint64_t context) {
    MutexLock lock(mutex_);
    records_[context].accepted = true;
    ++accepted_;
  }
  void Complete(const Completion& completion) {
    MutexLock lock(mutex_);
    ++records_.at(completion.request_context).completions;
    succeeded_[completion.type] += completion.status == NtStatus::kSuccess ? 1 : 0;
  }
  // `alive`: the sessions whose deep queues were drained.
  void ExpectCompleted(const std::set<SessionId>& alive) const {
    MutexLock lock(mutex_);
    for (size_t context = 0; context < records_.size(); ++context) {
      const Record& record = records_[context];
      const bool must = record.accepted && record.deep && !record.silent && alive.contains(record.session);
      EXPECT_LE(record.completions, record.accepted ? 1 : 0) << context;
      EXPECT_GE(record.completions, must ? 1 : 0) << context;
    }
  }
  size_t accepted() const {
    MutexLock lock(mutex_);
    return accepted_;
  }
  std::map<OperationType, uint64_t> succeeded() const {
    MutexLock lock(mutex_);
    return succeeded_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<Record> records_ RNICD_GUARDED_BY(mutex_);
  size_t accepted_ RNICD_GUARDED_BY(mutex_) = 0;
  std::map<OperationType, uint64_t> succeeded_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
