#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/core/session.h"
#include "tests/fuzz/node.h"

namespace rnicd::fuzz {

// Where regions and fast registrations of a side begin.
inline constexpr uint64_t kRegionBase = 0x7f0000000000;
inline constexpr uint64_t kFastBase = 0x100000000000;
// Pages of a side's memory: those that something gives a right to, and one behind them.
inline constexpr uint64_t kSharedPages = 3;
inline constexpr uint32_t kFastPagesMax = 4;
inline constexpr provider::QueuePairLimits kPairLimits{
    .receive_depth = 6, .initiator_depth = 8, .receive_entries = 3, .initiator_entries = 3, .inline_bytes = 64};

// What was posted to one queue pair, and what came back of it.
class Tally {
 public:
  void Post(uint64_t context, const core::WorkRequest& request);
  void Complete(const core::CqResult& result);
  // Every request has completed as often as it must.
  void CheckComplete() const;

 private:
  struct Posted {
    bool receive = false;
    bool silent = false;
    bool complete = false;
  };
  std::map<uint64_t, Posted> requests_;
  // Of the last completion of each queue: initiator requests and receives.
  uint64_t last_[2] = {0, 0};
};

// One of two owners whose queue pairs are connected: its objects, and what it counts of its requests.
class QueueSide {
 public:
  // `cq_depth`: of its one completion queue.
  QueueSide(FuzzNode& node, uint64_t process, uint32_t cq_depth);

  // Makes a queue pair in the old one's place, whose requests must all be complete when it is closed.
  void NewPair();
  std::string Address() const;
  void Connect(const std::string& peer) { (void)session->ConnectQp(pair, peer); }
  // A chain whose requests have contexts that this side has not posted before.
  void Post(std::span<const core::WorkRequest> chain);
  // At most so many completions.
  void Poll(uint32_t max);
  void DrainEvents();
  // No byte that nobody has a right to has changed.
  void CheckUntouched() const;

  std::shared_ptr<core::Session> session;
  AdapterId adapter;
  ProtectionDomainId domain;
  CompletionQueueId queue;
  QueuePairId pair;
  MemoryObjectId memory;
  // Of the kind of RegisterMr: with all rights, and to be read only.
  MemoryRegionId region;
  MemoryRegionId read_only;
  // Of the fast kind, for peers, and for the owner alone.
  MemoryRegionId fast;
  MemoryRegionId local_fast;
  MemoryWindowId window;
  core::BuiltLam mapping;

 private:
  void Register(MemoryRegionId id, uint64_t pages, uint32_t flags);
  void CheckOutcome(std::span<const core::WorkRequest> chain, const core::PostOutcome& outcome) const;

  FuzzNode& node_;
  std::vector<MemoryObjectId> untouched_;
  // By the context of the queue pair.
  std::map<uint64_t, Tally> tallies_;
  uint64_t pair_context_ = 0;
  std::map<uint64_t, uint64_t> disconnected_;
  // The completion queue has overrun or is closed: it reports nothing any more.
  bool dead_ = false;
};

}  // namespace rnicd::fuzz
