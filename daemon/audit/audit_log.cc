#include "daemon/audit/audit_log.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace rnicd::audit {

namespace {

// Time between two looks for counts that are due. Short against their periods.
constexpr std::chrono::milliseconds kLookInterval{250};

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const AuditOptions& options, const Clock& clock,
                                                         const log::Logger& logger) {
  RNICD_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(options.path));
  return std::unique_ptr<AuditLog>(new AuditLog(options, clock, std::move(file), logger));
}

AuditLog::AuditLog(const AuditOptions& options, const Clock& clock, AppendFile file, const log::Logger& logger)
    : options_(options),
      clock_(clock),
      logger_(logger),
      file_(std::move(file)),
      accounts_(options.bytes_per_second),
      thread_([this] { Run(); }) {}

AuditLog::~AuditLog() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void AuditLog::Write(const core::Decision& decision) {
  AuditLine line = LineOf(decision, options_.now());
  const Moment now{.instant = clock_.Now(), .wall = line.time};
  bool has_news = false;
  {
    MutexLock lock(mutex_);
    const bool was_empty = accounts_.empty();
    const Fate fate = accounts_.Add(std::move(line), now, admitted_);
    merged_.fetch_add(fate == Fate::kMerged ? 1 : 0);
    left_out_.fetch_add(fate == Fate::kLeftOut ? 1 : 0);
    // A flood that is only counted does not wake the thread.
    has_news = was_empty || !admitted_.empty();
    Enqueue();
  }
  if (has_news) {
    changed_.NotifyAll();
  }
}

void AuditLog::Enqueue() {
  for (AuditLine& line : admitted_) {
    if (waiting_.size() < options_.waiting_max) {
      waiting_.push_back(std::move(line));
    } else {
      unreported_ += DecisionsOf(line);
      overflowed_ = true;
      lost_.fetch_add(DecisionsOf(line));
    }
  }
  admitted_.clear();
}

bool AuditLog::FlushUntil(Instant deadline) {
  {
    MutexLock lock(mutex_);
    accounts_.TakeAll(Now(), waiting_);
  }
  changed_.NotifyAll();
  return WaitUntilWritten(deadline);
}

bool AuditLog::WaitUntilWritten(Instant deadline) {
  MutexLock lock(mutex_);
  while (HasWork() || writing_) {
    if (!changed_.WaitUntil(mutex_, deadline)) {
      return !HasWork() && !writing_;
    }
  }
  return true;
}

void AuditLog::WaitForWork() {
  while (!stopping_) {
    const Moment now = Now();
    if (now.instant >= look_at_) {
      // These are few, and already stand for many lines: they find room in any queue.
      accounts_.TakeDue(now, waiting_);
      look_at_ = now.instant + kLookInterval;
    }
    if (HasWork()) {
      return;
    }
    if (accounts_.empty()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kLookInterval);
    }
  }
}

void AuditLog::Run() {
  for (bool last = false; !last;) {
    std::vector<AuditLine> lines;
    uint64_t lost = 0;
    {
      MutexLock lock(mutex_);
      writing_ = false;
      changed_.NotifyAll();
      WaitForWork();
      // No more lines will come: all counts, and one last attempt to report earlier losses.
      last = !HasWork();
      if (last) {
        accounts_.TakeAll(Now(), waiting_);
      }
      lines.swap(waiting_);
      lost = std::exchange(unreported_, 0);
      overflowed_ = false;
      writing_ = true;
    }
    if (!lines.empty() || lost > 0) {
      WriteBatch(lines, lost);
    }
  }
}

void AuditLog::WriteBatch(const std::vector<AuditLine>& lines, uint64_t lost) {
  std::string text = lost > 0 ? FormatLost(options_.now(), lost) : std::string();
  const size_t first = text.size();
  for (const AuditLine& line : lines) {
    text += Format(line);
  }
  const AppendFile::Appended appended = file_.Append(text);
  LogOnChange(appended.status);
  const std::string_view written = std::string_view(text).substr(first, std::max(appended.bytes, first) - first);
  uint64_t dropped = 0;
  for (size_t line = std::count(written.begin(), written.end(), '\n'); line < lines.size(); ++line) {
    dropped += DecisionsOf(lines[line]);
  }
  lost_.fetch_add(dropped);
  MutexLock lock(mutex_);
  unreported_ += dropped + (appended.bytes < first ? lost : 0);
}

void AuditLog::LogOnChange(const absl::Status& status) {
  if (!status.ok() && !in_trouble_) {
    logger_.Error("the audit log cannot be written", {{"error", std::string(status.message())}});
  } else if (status.ok() && in_trouble_) {
    logger_.Info("the audit log is written again", {{"lost", lost()}});
  }
  in_trouble_ = !status.ok();
}

}  // namespace rnicd::audit
