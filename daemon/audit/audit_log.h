#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/system/abandonable_thread.h"
#include "daemon/audit/audit_queue.h"
#include "daemon/core/tenant/observation.h"
#include "log/logger.h"

namespace rnicd::audit {

// Writes every decision as a line of JSON, on its own thread: no call ever waits for the disk. Refusals that are
// repeated, and lines of an owner with too many, become counts (owner_account.h). Lines that cannot be written are
// counted, and the next line that is written reports the number.
// Lifetime: the destructor waits until the queued lines and all counts are written, but for no longer than
//           AuditOptions::stop_timeout. After this timeout it abandons the thread, and logs that.
// Threads:  safe.
class AuditLog final : public core::Observer {
 public:
  // `clock` measures the periods of counts. `logger` reports when the file cannot be written, and when it can again.
  // Both outlive the log. Errors: as AppendFile::Open.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const AuditOptions& options, const Clock& clock,
                                                        const log::Logger& logger);
  // Appends lines with `append` instead of to a file.
  AuditLog(const AuditOptions& options, const Clock& clock, AuditQueue::Append append, const log::Logger& logger);
  ~AuditLog() override;
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Never blocks.
  void Write(const core::Decision& decision) { queue_->Write(decision); }
  // Handles decisions only.
  void Observe(const core::Observation& observation) override {
    if (const auto* const decision = observation.As<core::Decision>(); decision != nullptr) {
      Write(*decision);
    }
  }
  // Numbers of decisions since the start: those whose line, or count, never reached the file; those that were merged
  // with an equal one; those that were left out.
  uint64_t lost() const { return queue_->lost(); }
  uint64_t merged() const { return queue_->merged(); }
  uint64_t left_out() const { return queue_->left_out(); }
  // False when lines still wait at the deadline. Counts that are not due need not be written.
  bool WaitUntilWritten(Instant deadline) { return queue_->WaitUntilWritten(deadline); }
  // Writes all counts as well: for a process that ends without the destructor.
  bool FlushUntil(Instant deadline) { return queue_->FlushUntil(deadline); }

 private:
  const std::chrono::milliseconds stop_timeout_;
  const log::Logger& logger_;
  // Shared with the thread, which may be abandoned.
  const std::shared_ptr<AuditQueue> queue_;
  AbandonableThread thread_;
};

}  // namespace rnicd::audit
