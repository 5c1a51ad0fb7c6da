#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/audit/audit_line.h"
#include "daemon/audit/byte_budget.h"

namespace rnicd::audit {

// One moment on both clocks: the first measures, the second is written.
struct Moment {
  Instant instant;
  WallTime wall;
};

// Outcome of a line.
enum class Fate : uint8_t {
  kWritten,
  // Counted by a line that will be written later.
  kMerged,
  // Counted as left out.
  kLeftOut,
};

// The lines of one owner: decides which are written, which are merged into one, and which are left out. Every decision
// is recorded, by a line of its own or as part of a count.
//
// - A refusal that repeats an earlier one is merged with it. The count is written at the end of a period: kPeriodMin at
//   first, doubled while the repeats continue, up to kPeriodMax. It waits for the budget, too.
// - The lines on the beginning and the end of sessions have a budget of their own. Above it they are merged.
// - Everything else that is above the budget is left out, and the number of these lines is written at the same periods.
// - Lines of operators and device plugins are never left out.
//
// Lines go to `out`, in order.
// Threads: one at a time.
class OwnerAccount {
 public:
  static constexpr std::chrono::seconds kPeriodMin{1};
  static constexpr std::chrono::seconds kPeriodMax{60};
  // Different refusals that are merged at a time. Further ones are lines of their own, within the budget.
  static constexpr size_t kRefusalsMax = 32;

  OwnerAccount(std::string name, uint64_t bytes_per_second)
      : name_(std::move(name)), lines_(bytes_per_second), sessions_(bytes_per_second) {}

  Fate Add(AuditLine line, const Moment& now, std::vector<AuditLine>& out);
  // Writes the counts that are due.
  void TakeDue(const Moment& now, std::vector<AuditLine>& out);
  // Writes all counts, whatever the budget.
  void TakeAll(const Moment& now, std::vector<AuditLine>& out);
  // True when this account behaves as a new one, and has nothing left to write.
  bool IsIdle(Instant now) const;

 private:
  // Repeats of a line that was written.
  struct Repeats {
    uint64_t session_id = 0;
    bool session_ended = false;
    ByteBudget* budget = nullptr;
    // Number of lines that were not written, and the first and last of them.
    uint64_t times = 0;
    WallTime first;
    AuditLine last;
    std::chrono::seconds period{0};
    Instant due;
  };

  Fate AddRefusal(AuditLine line, const Moment& now, std::vector<AuditLine>& out);
  Fate AddSessionLine(AuditLine line, const Moment& now, std::vector<AuditLine>& out);
  Fate AddWithinBudget(AuditLine line, const Moment& now, std::vector<AuditLine>& out);
  Repeats& StartRepeats(const std::string& sameness, uint64_t session_id, ByteBudget& budget, Instant now);
  static Fate Merge(AuditLine line, Repeats& repeats);
  // Writes the count, if there is one.
  static void Write(Repeats& repeats, const Moment& now, std::vector<AuditLine>& out);
  // Writes the count if it is due. True when there will be no other.
  static bool WriteDue(Repeats& repeats, const Moment& now, std::vector<AuditLine>& out);
  void WriteLeftOut(const Moment& now, std::vector<AuditLine>& out);
  // Makes the counts of the session due.
  void EndSession(uint64_t session_id, Instant now);

  const std::string name_;
  ByteBudget lines_;
  ByteBudget sessions_;
  std::unordered_map<std::string, Repeats> repeats_;
  uint64_t left_out_ = 0;
  WallTime left_out_first_;
  WallTime left_out_last_;
  std::chrono::seconds left_out_period_ = kPeriodMin;
  Instant left_out_due_;
};

}  // namespace rnicd::audit
