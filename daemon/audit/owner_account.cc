#include "daemon/audit/owner_account.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/audit/sameness.h"

namespace rnicd::audit {
namespace {

// Lines on the begin and end of a session are the context of all its other lines, so they have a budget of their own.
bool IsOnASession(const AuditLine& line) {
  return line.what == "SessionService.OpenSession" || line.what == "session.end";
}

// Operators and device plugins are trusted, and all their actions must be recorded.
bool IsNeverLeftOut(const AuditLine& line) {
  return line.caller.has_value() && line.caller->role != core::Role::kWorkload;
}

std::chrono::seconds Longer(std::chrono::seconds period) { return std::min(2 * period, OwnerAccount::kPeriodMax); }

}  // namespace

Fate OwnerAccount::Add(AuditLine line, const Moment& now, std::vector<AuditLine>& out) {
  if (line.code != absl::StatusCode::kOk) {
    return AddRefusal(std::move(line), now, out);
  }
  return IsOnASession(line) ? AddSessionLine(std::move(line), now, out) : AddWithinBudget(std::move(line), now, out);
}

Fate OwnerAccount::AddRefusal(AuditLine line, const Moment& now, std::vector<AuditLine>& out) {
  const std::string sameness = SamenessOf(line);
  if (const auto same = repeats_.find(sameness); same != repeats_.end()) {
    return Merge(std::move(line), same->second);
  }
  if (repeats_.size() >= kRefusalsMax) {
    return AddWithinBudget(std::move(line), now, out);
  }
  Repeats& repeats = StartRepeats(sameness, line.session_id, lines_, now.instant);
  if (IsNeverLeftOut(line) || lines_.Take(BytesMax(line), now.instant)) {
    out.push_back(std::move(line));
    return Fate::kWritten;
  }
  return Merge(std::move(line), repeats);
}

// These are at most two, and need no place among the refusals.
Fate OwnerAccount::AddSessionLine(AuditLine line, const Moment& now, std::vector<AuditLine>& out) {
  if (line.what == "session.end") {
    EndSession(line.session_id, now.instant);
    TakeDue(now, out);
  }
  if (sessions_.Take(BytesMax(line), now.instant)) {
    out.push_back(std::move(line));
    return Fate::kWritten;
  }
  const auto same = repeats_.find(line.what);
  Repeats& repeats =
      same != repeats_.end() ? same->second : StartRepeats(line.what, /*session_id=*/0, sessions_, now.instant);
  return Merge(std::move(line), repeats);
}

Fate OwnerAccount::AddWithinBudget(AuditLine line, const Moment& now, std::vector<AuditLine>& out) {
  if (IsNeverLeftOut(line) || lines_.Take(BytesMax(line), now.instant)) {
    out.push_back(std::move(line));
    return Fate::kWritten;
  }
  if (left_out_ == 0) {
    left_out_first_ = line.time;
    left_out_due_ = std::max(left_out_due_, now.instant + kPeriodMin);
  }
  ++left_out_;
  left_out_last_ = line.time;
  return Fate::kLeftOut;
}

OwnerAccount::Repeats& OwnerAccount::StartRepeats(const std::string& sameness, uint64_t session_id, ByteBudget& budget,
                                                  Instant now) {
  Repeats& repeats = repeats_[sameness];
  repeats.session_id = session_id;
  repeats.budget = &budget;
  repeats.period = kPeriodMin;
  repeats.due = now + kPeriodMin;
  return repeats;
}

Fate OwnerAccount::Merge(AuditLine line, Repeats& repeats) {
  if (repeats.times == 0) {
    repeats.first = line.time;
  }
  ++repeats.times;
  repeats.last = std::move(line);
  return Fate::kMerged;
}

void OwnerAccount::Write(Repeats& repeats, const Moment& now, std::vector<AuditLine>& out) {
  if (repeats.times == 0) {
    return;
  }
  AuditLine line = std::move(repeats.last);
  line.times = repeats.times;
  line.first = repeats.first;
  line.last = std::exchange(line.time, now.wall);
  repeats.budget->Charge(BytesMax(line), now.instant);
  repeats.times = 0;
  repeats.last = {};
  out.push_back(std::move(line));
}

void OwnerAccount::WriteLeftOut(const Moment& now, std::vector<AuditLine>& out) {
  if (left_out_ == 0) {
    return;
  }
  AuditLine line = LeftOutLine(name_, std::exchange(left_out_, 0), left_out_first_, left_out_last_);
  line.time = now.wall;
  lines_.Charge(BytesMax(line), now.instant);
  out.push_back(std::move(line));
}

void OwnerAccount::EndSession(uint64_t session_id, Instant now) {
  for (auto& [sameness, repeats] : repeats_) {
    if (repeats.session_id == session_id) {
      repeats.session_ended = true;
      repeats.due = now;
    }
  }
}

bool OwnerAccount::WriteDue(Repeats& repeats, const Moment& now, std::vector<AuditLine>& out) {
  if (now.instant < repeats.due) {
    return false;
  }
  if (repeats.times == 0) {
    return true;
  }
  if (!repeats.budget->HasRoom(now.instant)) {
    return false;
  }
  Write(repeats, now, out);
  repeats.period = Longer(repeats.period);
  repeats.due = now.instant + repeats.period;
  return repeats.session_ended;
}

void OwnerAccount::TakeDue(const Moment& now, std::vector<AuditLine>& out) {
  for (auto entry = repeats_.begin(); entry != repeats_.end();) {
    entry = WriteDue(entry->second, now, out) ? repeats_.erase(entry) : std::next(entry);
  }
  if (now.instant < left_out_due_) {
    return;
  }
  left_out_period_ = left_out_ == 0 ? kPeriodMin : Longer(left_out_period_);
  if (left_out_ > 0) {
    left_out_due_ = now.instant + left_out_period_;
  }
  WriteLeftOut(now, out);
}

void OwnerAccount::TakeAll(const Moment& now, std::vector<AuditLine>& out) {
  for (auto& [sameness, repeats] : repeats_) {
    Write(repeats, now, out);
  }
  repeats_.clear();
  WriteLeftOut(now, out);
}

bool OwnerAccount::IsIdle(Instant now) const {
  return repeats_.empty() && left_out_ == 0 && left_out_due_ <= now && lines_.IsFull(now) && sessions_.IsFull(now);
}

}  // namespace rnicd::audit
