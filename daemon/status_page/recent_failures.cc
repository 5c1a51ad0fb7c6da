#include "daemon/status_page/recent_failures.h"

#include <algorithm>
#include <unordered_map>

#include "base/error_reason.h"
#include "base/status.h"

namespace rnicd::status_page {
namespace {

// Bounds the rows in bytes as well.
constexpr size_t kTextBytesMax = 256;

std::string_view Cut(std::string_view text) { return text.substr(0, kTextBytesMax); }

int32_t PidOf(const core::Decision& decision) { return decision.caller != nullptr ? decision.caller->pid : 0; }

// False for a failure that was not made by MakeError, such as a refused connection; it has only its code.
bool HasReason(const absl::Status& status, const ErrorReasonRow& row) { return row.code == status.code(); }

}  // namespace

void RecentFailures::Observe(const core::Observation& observation) {
  const auto* const decision = observation.As<core::Decision>();
  if (decision != nullptr && !decision->status.ok()) {
    Add(*decision);
  }
}

void RecentFailures::Add(const core::Decision& decision) {
  const ErrorInfo info = ErrorInfoOf(decision.status);
  const ErrorReasonRow& row = RowOf(info.reason);
  const bool has_reason = HasReason(decision.status, row);
  const std::string reason = has_reason ? std::string(row.name) : absl::StatusCodeToString(decision.status.code());
  const WallTime time = now_();
  MutexLock lock(mutex_);
  Failure* failure = Same(decision, reason);
  if (failure == nullptr) {
    MakeRoom();
    failure = &rows_.emplace_back();
    failure->number = next_number_++;
    failure->first = time;
    failure->what = Cut(decision.what);
    failure->tenant = Cut(decision.tenant);
    failure->pid = PidOf(decision);
    failure->uid = decision.caller != nullptr ? decision.caller->uid : 0;
    failure->reason = reason;
    failure->sentence = has_reason ? row.sentence : std::string_view();
  }
  // The field at fault may differ within a flood; the row keeps the last.
  failure->field = Cut(info.field);
  failure->note = Cut(decision.note);
  failure->last = time;
  ++failure->count;
}

Failure* RecentFailures::Same(const core::Decision& decision, std::string_view reason) {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Failure& row) {
    return row.pid == PidOf(decision) && row.reason == reason && row.what == Cut(decision.what) &&
           row.tenant == Cut(decision.tenant);
  });
  return found != rows_.end() ? &*found : nullptr;
}

void RecentFailures::MakeRoom() {
  if (rows_.size() < kMost) {
    return;
  }
  std::unordered_map<std::string_view, size_t> by_tenant;
  for (const Failure& row : rows_) {
    ++by_tenant[row.tenant];
  }
  const auto goes_first = [&](const Failure& a, const Failure& b) {
    const size_t of_a = by_tenant[a.tenant];
    const size_t of_b = by_tenant[b.tenant];
    return of_a != of_b ? of_a > of_b : a.last < b.last;
  };
  rows_.erase(std::min_element(rows_.begin(), rows_.end(), goes_first));
}

std::vector<Failure> RecentFailures::List() const {
  std::vector<Failure> rows;
  {
    MutexLock lock(mutex_);
    rows = rows_;
  }
  std::sort(rows.begin(), rows.end(), [](const Failure& a, const Failure& b) {
    return a.last != b.last ? a.last > b.last : a.number > b.number;
  });
  return rows;
}

}  // namespace rnicd::status_page
