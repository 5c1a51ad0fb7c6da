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
#include "daemon/core/observer.h"
#include "daemon/log/logger.h"

namespace rnicd::audit {

struct AuditOptions {
  std::string path;
  // Lines that may wait for the file; further lines are lost.
  size_t waiting_max = 16384;
  // Clock for the time in the lines.
  std::function<WallTime()> now = std::chrono::system_clock::now;
};

// Writes every decision as a line of JSON, on its own thread: no call ever waits for the disk. Lines that cannot be
// written are counted, and the next line that is written reports the number.
// Lifetime: the destructor writes the queued lines, then joins.
// Threads:  safe.
class AuditLog final : public core::Observer {
 public:
  // `logger` outlives the log; it reports when the file cannot be written, and when it can again. Errors: as
  // AppendFile::Open.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const AuditOptions& options, const log::Logger& logger);
  ~AuditLog() override;
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Never blocks.
  void Write(const core::Decision& decision);
  void OnDecision(const core::Decision& decision) override { Write(decision); }
  // Number of lines since the start that never reached the file.
  uint64_t lost() const { return lost_.load(); }
  // False when lines still wait at the deadline.
  bool WaitUntilWritten(Instant deadline);

 private:
  AuditLog(const AuditOptions& options, AppendFile file, const log::Logger& logger);

  void Run();
  bool HasWork() const RNICD_REQUIRES(mutex_) { return !waiting_.empty() || overflowed_; }
  // `lost`: lost lines that have not been reported yet.
  void WriteBatch(const std::vector<AuditLine>& lines, uint64_t lost);
  void LogOnChange(const absl::Status& status);

  const AuditOptions options_;
  const log::Logger& logger_;
  std::atomic<uint64_t> lost_{0};
  // Used by the thread only.
  AppendFile file_;
  bool in_trouble_ = false;

  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<AuditLine> waiting_ RNICD_GUARDED_BY(mutex_);
  uint64_t unreported_ RNICD_GUARDED_BY(mutex_) = 0;
  // True when lines were lost because the queue was full, and the thread has not seen it yet.
  bool overflowed_ RNICD_GUARDED_BY(mutex_) = false;
  bool writing_ RNICD_GUARDED_BY(mutex_) = false;
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rnicd::audit
