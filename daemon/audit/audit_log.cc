#include "daemon/audit/audit_log.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace rnicd::audit {

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const AuditOptions& options, const log::Logger& logger) {
  RNICD_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Open(options.path));
  return std::unique_ptr<AuditLog>(new AuditLog(options, std::move(file), logger));
}

AuditLog::AuditLog(const AuditOptions& options, AppendFile file, const log::Logger& logger)
    : options_(options), logger_(logger), file_(std::move(file)), thread_([this] { Run(); }) {}

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
  {
    MutexLock lock(mutex_);
    if (waiting_.size() < options_.waiting_max) {
      waiting_.push_back(std::move(line));
    } else {
      ++unreported_;
      overflowed_ = true;
      lost_.fetch_add(1);
    }
  }
  changed_.NotifyAll();
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

void AuditLog::Run() {
  for (bool last = false; !last;) {
    std::vector<AuditLine> lines;
    uint64_t lost = 0;
    {
      MutexLock lock(mutex_);
      writing_ = false;
      changed_.NotifyAll();
      while (!HasWork() && !stopping_) {
        changed_.Wait(mutex_);
      }
      // No more lines will come: one last attempt to report earlier losses.
      last = !HasWork();
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
  const std::string_view rest = std::string_view(text).substr(std::max(appended.bytes, first));
  const auto dropped = static_cast<uint64_t>(std::count(rest.begin(), rest.end(), '\n'));
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
