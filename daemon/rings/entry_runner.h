#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/post_outcome.h"
#include "base/ndk/registration.h"
#include "base/ndk/work_request.h"
#include "daemon/core/ring/ring.h"
#include "daemon/core/session/session.h"

namespace rnicd::rings {

// An entry from when it is taken until it is completed.
struct Entry {
  std::shared_ptr<core::Ring> ring;
  // Lives as long as a request of it does.
  const core::Lease* session = nullptr;
  ring::Submission submitted;
};

// The rings' end of core::kOperations: decodes entries, runs their operations in their sessions, and encodes the
// outcomes, as gate and service do for calls. Its only decision is whether an entry can be decoded.
// Lifetime: outlives every request that it has begun.
// Threads:  one at a time; requests that pend complete on others.
class EntryRunner {
 public:
  // Work requests of one entry: the length of its chain; 1 for any other.
  static uint32_t RequestsOf(const ring::Submission& submitted);
  // What it costs, in work requests of usual size: a long payload takes time however few they are.
  static uint32_t CostOf(const ring::Submission& submitted);

  // Takes the entry from its ring, executes it, and completes it now or later. The session's guard is only needed until
  // it returns.
  void Run(Entry entry, const core::SessionGuard& guard);
  // Entries that were refused. From any thread.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  using Payload = std::span<const uint64_t>;

  // What an entry needs of the payload area, copied.
  absl::StatusOr<Payload> CopyPayload(const Entry& entry);
  void Execute(const Entry& entry, const core::SessionGuard& guard, Payload payload);
  void Post(const Entry& entry, const core::SessionGuard& guard, Payload payload);
  ring::Outcome OutcomeOf(const Entry& entry, const PostOutcome& posted);
  void Register(const Entry& entry, const core::SessionGuard& guard, Payload payload);
  void Deregister(const Entry& entry, const core::SessionGuard& guard);

  // An entry that is refused as a whole. Without an outcome, it fails its queue pair.
  void Refuse(const Entry& entry, const core::SessionGuard& guard, const absl::Status& why);
  // Completes an entry, and reports how it ended: its audit line, and its count if it was refused.
  void Complete(const Entry& entry, const absl::StatusOr<ring::Outcome>& ended);

  std::atomic<uint64_t> refused_{0};
  // Used again for each entry.
  std::vector<uint64_t> payload_;
  std::vector<WorkRequest> chain_;
  std::vector<MdlEntry> mdl_chain_;
  std::vector<uint32_t> tokens_;
};

}  // namespace rnicd::rings
