#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/core/session/session.h"
#include "tests/fuzz/node.h"

namespace rnicd::fuzz {

// Base addresses of a side's regions and fast registrations.
inline constexpr uint64_t kRegionBase = 0x7f0000000000;
inline constexpr uint64_t kFastBase = 0x100000000000;
// Pages of a side's memory: those that a token covers, and one after them.
inline constexpr uint64_t kSharedPages = 3;
inline constexpr uint32_t kFastPagesMax = 4;
inline constexpr provider::QueuePairLimits kPairLimits{
    .receive_depth = 6, .initiator_depth = 8, .receive_entries = 3, .initiator_entries = 3, .inline_bytes = 64};

// Requests posted to one queue pair, and their completions.
class Tally {
 public:
  void Post(uint64_t context, const WorkRequest& request);
  void Complete(const Completion& result);
  // Checks that every request has completed as often as it must.
  void CheckComplete() const;

 private:
  struct Posted {
    bool receive = false;
    bool silent = false;
    bool complete = false;
  };
  std::map<uint64_t, Posted> requests_;
  // Context of the last completion of each queue: initiator requests and receives.
  uint64_t last_[2] = {0, 0};
};

// One of two owners whose queue pairs are connected: its objects and the tally of its requests.
class QueueSide {
 public:
  // `cq_depth`: depth of its only completion queue.
  QueueSide(FuzzNode& node, uint64_t process, uint32_t cq_depth);

  // Replaces the queue pair; all requests of the old one must be complete when it is closed.
  void NewPair();
  std::string Address() const;
  void Connect(const std::string& peer) { (void)session->Begin()->pairs().Connect(pair, peer); }
  // Posts a chain whose requests have contexts that this side has not posted before.
  void Post(std::span<const WorkRequest> chain);
  // Polls at most `max` completions.
  void Poll(uint32_t max);
  void DrainEvents();
  // Checks that no byte outside of all rights has changed.
  void CheckUntouched() const;

  std::shared_ptr<core::Session> session;
  AdapterId adapter;
  ProtectionDomainId domain;
  CompletionQueueId queue;
  QueuePairId pair;
  MemoryObjectId memory;
  // Regions of RegisterMr: one with all rights, one read-only.
  MemoryRegionId region;
  MemoryRegionId read_only;
  // Fast-register regions: one for peers, one for the owner only.
  MemoryRegionId fast;
  MemoryRegionId local_fast;
  MemoryWindowId window;
  core::BuiltLam mapping;

 private:
  void Register(MemoryRegionId id, uint64_t pages, uint32_t flags);
  void CheckOutcome(std::span<const WorkRequest> chain, const PostOutcome& outcome) const;

  FuzzNode& node_;
  std::vector<MemoryObjectId> untouched_;
  // Tallies by queue pair context.
  std::map<uint64_t, Tally> tallies_;
  uint64_t pair_context_ = 0;
  std::map<uint64_t, uint64_t> disconnected_;
  // True once the completion queue has overrun or is closed and reports no more completions.
  bool dead_ = false;
};

}  // namespace rnicd::fuzz
