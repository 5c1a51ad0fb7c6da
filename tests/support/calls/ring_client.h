#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "ring/client_end.h"
#include "tests/support/process/memory_file.h"

namespace rnicd::test {

// A request for the daemon, without its places in the ring.
struct RingRequest {
  // Operation and arguments.
  ring::Submission entry;
  // A multiple of ring::kPayloadUnit long.
  std::vector<std::byte> payload;
  // Tokens that the daemon may issue.
  uint32_t tokens = 0;
};

struct RingReply {
  ring::Outcome outcome;
  // Name of the field at fault, after a refusal.
  std::string field;
  // As many as were asked for; 0 where none was issued.
  std::vector<uint32_t> tokens;
};

// A ring of a session, written from docs/RINGS.md: a second client beside librnicd's.
// Threads: safe. Each thread waits for its own outcome; one of those that wait sleeps on the ring.
class RingClient {
 public:
  // The descriptors of OpenRing. A file that is not a ring is a test failure, and everything is then refused.
  RingClient(const UniqueFd& memory, uint64_t file_bytes, UniqueFd doorbell);

  // Executes a request. Nothing if the ring ended before its outcome came, or the outcome did not come in time;
  // end_reason() tells which.
  std::optional<RingReply> Execute(const RingRequest& request);
  // False for a request that this ring can never hold.
  bool Holds(const RingRequest& request) const;
  // 0, or the ErrorReason for which the ring has ended.
  uint32_t end_reason() const;

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  // A request without an outcome.
  struct Outstanding {
    uint32_t result_offset = 0;
    uint32_t tokens = 0;
  };

  uint32_t Submit(const RingRequest& request, uint32_t offset) RNICD_REQUIRES(mutex_);
  // Reads outcomes until the condition holds. False when the ring has ended or the deadline passed before that.
  bool ReadUntil(const std::function<bool()>& condition, Deadline deadline) RNICD_REQUIRES(mutex_);
  void ReadOutcomes() RNICD_REQUIRES(mutex_);
  void SleepUntilOutcome() RNICD_REQUIRES(mutex_);

  const SharedMapping mapping_;
  const UniqueFd doorbell_;
  mutable Mutex mutex_;
  // Sleep is called without the lock.
  std::optional<ring::ClientEnd> end_;
  // Requests and replies by number.
  std::map<uint64_t, Outstanding> outstanding_ RNICD_GUARDED_BY(mutex_);
  std::map<uint64_t, RingReply> replies_ RNICD_GUARDED_BY(mutex_);
  // True while a thread sleeps on the ring.
  bool reading_ RNICD_GUARDED_BY(mutex_) = false;
  // An outcome was read, or the sleeping thread woke.
  ConditionVariable changed_;
};

}  // namespace rnicd::test
