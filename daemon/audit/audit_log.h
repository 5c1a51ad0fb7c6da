#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/audit/append_file.h"
#include "daemon/audit/audit_line.h"
#include "daemon/audit/owner_accounts.h"
#include "daemon/core/observer.h"
#include "log/logger.h"

namespace rnicd::audit {

struct AuditOptions {
  std::string path;
  // Lines that may wait for the file; further lines are lost.
  size_t waiting_max = 16384;
  // Bytes that each owner may cause (owner_account.h); 0: no limit.
  uint64_t bytes_per_second = 0;
  // Clock for the time in the lines.
  std::function<WallTime()> now = std::chrono::system_clock::now;
};

// Writes every decision as a line of JSON, on its own thread: no call ever waits for the disk. Refusals that are
// repeated, and lines of an owner with too many, become counts (owner_account.h). Lines that cannot be written are
// counted, and the next line that is written reports the number.
// Lifetime: the destructor writes the queued lines and all counts, then joins.
// Threads:  safe.
class AuditLog final : public core::Observer {
 public:
  // `clock` measures the periods of counts. `logger` reports when the file cannot be written, and when it can again.
  // Both outlive the log. Errors: as AppendFile::Open.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const AuditOptions& options, const Clock& clock,
                                                        const log::Logger& logger);
  ~AuditLog() override;
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Never blocks.
  void Write(const core::Decision& decision);
  // Handles decisions only.
  void Observe(const core::Observation& observation) override {
    if (const auto* const decision = observation.As<core::Decision>(); decision != nullptr) {
      Write(*decision);
    }
  }
  // Numbers of decisions since the start: those whose line, or count, never reached the file; those that were merged
  // with an equal one; those that were left out.
  uint64_t lost() const { return lost_.load(); }
  uint64_t merged() const { return merged_.load(); }
  uint64_t left_out() const { return left_out_.load(); }
  // False when lines still wait at the deadline. Counts that are not due need not be written.
  bool WaitUntilWritten(Instant deadline);
  // Writes all counts as well: for a process that ends without the destructor.
  bool FlushUntil(Instant deadline);

 private:
  AuditLog(const AuditOptions& options, const Clock& clock, AppendFile file, const log::Logger& logger);

  void Run();
  bool HasWork() const RNICD_REQUIRES(mutex_) { return !waiting_.empty() || overflowed_; }
  // Returns with work, or when the log ends.
  void WaitForWork() RNICD_REQUIRES(mutex_);
  // Queues what was admitted, as far as there is room.
  void Enqueue() RNICD_REQUIRES(mutex_);
  Moment Now() const { return {.instant = clock_.Now(), .wall = options_.now()}; }
  // `lost`: lost decisions that have not been reported yet.
  void WriteBatch(const std::vector<AuditLine>& lines, uint64_t lost);
  void LogOnChange(const absl::Status& status);

  const AuditOptions options_;
  const Clock& clock_;
  const log::Logger& logger_;
  std::atomic<uint64_t> lost_{0};
  std::atomic<uint64_t> merged_{0};
  std::atomic<uint64_t> left_out_{0};
  // Used by the thread only.
  AppendFile file_;
  bool in_trouble_ = false;

  Mutex mutex_;
  ConditionVariable changed_;
  OwnerAccounts accounts_ RNICD_GUARDED_BY(mutex_);
  // Next time to look for counts that are due.
  Instant look_at_ RNICD_GUARDED_BY(mutex_);
  // Empty outside of Write; kept for its memory.
  std::vector<AuditLine> admitted_ RNICD_GUARDED_BY(mutex_);
  std::vector<AuditLine> waiting_ RNICD_GUARDED_BY(mutex_);
  uint64_t unreported_ RNICD_GUARDED_BY(mutex_) = 0;
  // True when lines were lost because the queue was full, and the thread has not seen it yet.
  bool overflowed_ RNICD_GUARDED_BY(mutex_) = false;
  bool writing_ RNICD_GUARDED_BY(mutex_) = false;
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rnicd::audit
