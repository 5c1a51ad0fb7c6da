#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/wall_time.h"
#include "daemon/audit/append_file.h"
#include "daemon/audit/audit_line.h"
#include "daemon/audit/owner_accounts.h"
#include "daemon/core/tenant/observation.h"
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
  // Timeout of the log's destructor, which waits for the file.
  std::chrono::milliseconds stop_timeout{5000};
};

// State that an AuditLog shares with its thread: the queue of lines, and the function that writes them to the file.
// Lifetime: may outlive the log, with the thread, when the file hangs. After Abandon it uses neither clock nor logger.
// Threads:  safe; Run is the thread's.
class AuditQueue {
 public:
  // Appends lines to the file; may block without a limit. As AppendFile::Append.
  using Append = std::function<AppendFile::Appended(std::string_view)>;

  AuditQueue(const AuditOptions& options, const Clock& clock, Append append, const log::Logger& logger)
      : options_(options),
        append_(std::move(append)),
        clock_(clock),
        logger_(logger),
        accounts_(options.bytes_per_second) {}

  // As in AuditLog.
  void Write(const core::Decision& decision);
  uint64_t lost() const { return totals_.lost.load(); }
  uint64_t merged() const { return totals_.merged.load(); }
  uint64_t left_out() const { return totals_.left_out.load(); }
  bool WaitUntilWritten(Instant deadline);
  bool FlushUntil(Instant deadline);

  // Writes lines until Stop was called and all are written.
  void Run();
  void Stop();
  void Abandon();

 private:
  // Lines taken from the queue, and lost decisions that have not been reported yet.
  struct Batch {
    std::vector<AuditLine> lines;
    uint64_t lost = 0;
    WallTime time;
  };

  // Counts of decisions by outcome.
  struct Totals {
    std::atomic<uint64_t> lost{0};
    std::atomic<uint64_t> merged{0};
    std::atomic<uint64_t> left_out{0};
  };
  // State of the thread, and requests to it.
  struct Thread {
    bool writing = false;
    bool stopping = false;
    bool abandoned = false;
  };

  bool HasWork() const RNICD_REQUIRES(mutex_) { return !waiting_.empty() || overflowed_; }
  // Returns with work, or when the log ends.
  void WaitForWork() RNICD_REQUIRES(mutex_);
  // Queues the admitted lines as far as the queue has room.
  void Enqueue() RNICD_REQUIRES(mutex_);
  Moment Now() const RNICD_REQUIRES(mutex_) { return {.instant = clock_.Now(), .wall = options_.now()}; }
  // Waits for the next batch. False when nothing more will come after it.
  bool Take(Batch& batch);
  void WriteBatch(const Batch& batch);
  void LogOnChange(const absl::Status& status) RNICD_REQUIRES(mutex_);

  const AuditOptions options_;
  // Used by the thread only.
  const Append append_;
  Totals totals_;

  Mutex mutex_;
  ConditionVariable changed_;
  const Clock& clock_ RNICD_GUARDED_BY(mutex_);
  const log::Logger& logger_ RNICD_GUARDED_BY(mutex_);
  OwnerAccounts accounts_ RNICD_GUARDED_BY(mutex_);
  // Next time to look for counts that are due.
  Instant look_at_ RNICD_GUARDED_BY(mutex_);
  // Empty outside of Write; kept for its memory.
  std::vector<AuditLine> admitted_ RNICD_GUARDED_BY(mutex_);
  std::vector<AuditLine> waiting_ RNICD_GUARDED_BY(mutex_);
  uint64_t unreported_ RNICD_GUARDED_BY(mutex_) = 0;
  // True when lines were lost because the queue was full, and the thread has not seen it yet.
  bool overflowed_ RNICD_GUARDED_BY(mutex_) = false;
  bool in_trouble_ RNICD_GUARDED_BY(mutex_) = false;
  Thread thread_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::audit
