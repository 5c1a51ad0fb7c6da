#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/ndk/post_outcome.h"
#include "base/ndk/registration.h"
#include "base/ndk/work_request.h"
#include "daemon/core/request/node.h"
#include "daemon/core/ring/ring.h"
#include "daemon/core/session/session.h"

namespace rnicd::rings {

// Executes what clients submit, in their sessions: what service does for calls. It decides nothing but whether an entry
// can be read.
// Lifetime: outlives every request that it has begun.
// Threads:  one at a time; requests that pend complete on others.
class EntryRunner {
 public:
  // The observer outlives every request.
  explicit EntryRunner(core::Observer& observer) : observer_(observer) {}

  // Work requests of one entry: the length of its chain; 1 for any other.
  static uint32_t RequestsOf(const ring::Submission& entry);
  // What it costs, in work requests of usual size: a long payload takes time however few they are.
  static uint32_t CostOf(const ring::Submission& entry);

  // Takes the entry from the ring, executes it, and completes it now or later. The session's guard is only needed until
  // it returns.
  void Run(const std::shared_ptr<core::Ring>& ring, const core::Lease& session, const core::SessionGuard& guard,
           const ring::Submission& submitted);
  // Entries that were refused. From any thread.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  // What an entry needs of the payload area, copied.
  absl::StatusOr<std::span<const uint64_t>> CopyPayload(core::Ring& ring, const ring::Submission& entry);
  absl::Status Execute(const std::shared_ptr<core::Ring>& ring, const core::Lease& session,
                       const core::SessionGuard& guard, const ring::Submission& entry,
                       std::span<const uint64_t> payload, ring::Outcome* outcome, bool* pends);
  absl::Status Post(core::Ring& ring, const core::SessionGuard& guard, const ring::Submission& entry,
                    std::span<const uint64_t> payload, ring::Outcome* outcome);

  // The audit line of an entry, and its count if it was refused.
  void Report(const core::Lease& session, const ring::Submission& entry, const absl::Status& status);

  core::Observer& observer_;
  std::atomic<uint64_t> refused_{0};
  // Used again for each entry.
  std::vector<uint64_t> payload_;
  std::vector<WorkRequest> chain_;
  std::vector<MdlEntry> mdl_chain_;
  std::vector<uint32_t> tokens_;
};

}  // namespace rnicd::rings
