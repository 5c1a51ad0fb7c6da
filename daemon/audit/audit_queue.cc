#include "daemon/audit/audit_queue.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace rnicd::audit {

namespace {

// Time between two looks for counts that are due. Short against their periods.
constexpr std::chrono::milliseconds kLookInterval{250};

}  // namespace

void AuditQueue::Write(const core::Decision& decision) {
  AuditLine line = LineOf(decision, options_.now());
  bool has_news = false;
  {
    MutexLock lock(mutex_);
    const Moment now{.instant = clock_.Now(), .wall = line.time};
    const bool was_empty = accounts_.empty();
    const Fate fate = accounts_.Add(std::move(line), now, admitted_);
    totals_.merged.fetch_add(fate == Fate::kMerged ? 1 : 0);
    totals_.left_out.fetch_add(fate == Fate::kLeftOut ? 1 : 0);
    // A flood that is only counted does not wake the thread.
    has_news = was_empty || !admitted_.empty();
    Enqueue();
  }
  if (has_news) {
    changed_.NotifyAll();
  }
}

void AuditQueue::Enqueue() {
  for (AuditLine& line : admitted_) {
    if (waiting_.size() < options_.waiting_max) {
      waiting_.push_back(std::move(line));
    } else {
      unreported_ += DecisionsOf(line);
      overflowed_ = true;
      totals_.lost.fetch_add(DecisionsOf(line));
    }
  }
  admitted_.clear();
}

bool AuditQueue::FlushUntil(Instant deadline) {
  {
    MutexLock lock(mutex_);
    accounts_.TakeAll(Now(), waiting_);
  }
  changed_.NotifyAll();
  return WaitUntilWritten(deadline);
}

bool AuditQueue::WaitUntilWritten(Instant deadline) {
  MutexLock lock(mutex_);
  while (HasWork() || thread_.writing) {
    if (!changed_.WaitUntil(mutex_, deadline)) {
      return !HasWork() && !thread_.writing;
    }
  }
  return true;
}

void AuditQueue::WaitForWork() {
  while (!thread_.stopping) {
    const Moment now = Now();
    if (now.instant >= look_at_) {
      // Lines of counts are few, and each stands for many lines: they are queued even above the limit.
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

void AuditQueue::Stop() {
  {
    MutexLock lock(mutex_);
    thread_.stopping = true;
  }
  changed_.NotifyAll();
}

void AuditQueue::Abandon() {
  MutexLock lock(mutex_);
  thread_.abandoned = true;
}

void AuditQueue::Run() {
  for (bool more = true; more;) {
    Batch batch;
    more = Take(batch);
    if (!batch.lines.empty() || batch.lost > 0) {
      WriteBatch(batch);
    }
  }
}

bool AuditQueue::Take(Batch& batch) {
  MutexLock lock(mutex_);
  thread_.writing = false;
  changed_.NotifyAll();
  WaitForWork();
  // Stop precedes Abandon, and once it was called the wait above does not use the clock.
  if (thread_.abandoned) {
    return false;
  }
  // No more lines will come: all counts, and one last attempt to report earlier losses.
  const bool last = !HasWork();
  if (last) {
    accounts_.TakeAll(Now(), waiting_);
  }
  batch.lines.swap(waiting_);
  batch.lost = std::exchange(unreported_, 0);
  batch.time = options_.now();
  overflowed_ = false;
  thread_.writing = true;
  return !last;
}

void AuditQueue::WriteBatch(const Batch& batch) {
  std::string text = batch.lost > 0 ? FormatLost(batch.time, batch.lost) : std::string();
  const size_t first = text.size();
  for (const AuditLine& line : batch.lines) {
    text += Format(line);
  }
  const AppendFile::Appended appended = append_(text);
  const std::string_view written = std::string_view(text).substr(first, std::max(appended.bytes, first) - first);
  uint64_t dropped = 0;
  for (size_t line = std::count(written.begin(), written.end(), '\n'); line < batch.lines.size(); ++line) {
    dropped += DecisionsOf(batch.lines[line]);
  }
  totals_.lost.fetch_add(dropped);
  MutexLock lock(mutex_);
  unreported_ += dropped + (appended.bytes < first ? batch.lost : 0);
  if (!thread_.abandoned) {
    LogOnChange(appended.status);
  }
}

void AuditQueue::LogOnChange(const absl::Status& status) {
  if (!status.ok() && !in_trouble_) {
    logger_.Error("the audit log cannot be written", {{"error", std::string(status.message())}});
  } else if (status.ok() && in_trouble_) {
    logger_.Info("the audit log is written again", {{"lost", lost()}});
  }
  in_trouble_ = !status.ok();
}

}  // namespace rnicd::audit
