#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/mutex.h"

namespace rnicd::log {

// Limits the lines of a source whose number is under the control of others: a burst, then one line per interval.
// Threads: safe.
class LineBudget {
 public:
  struct Options {
    // Lines that may follow each other after a pause; at least 1.
    uint32_t burst = 10;
    // Time after which one more line may be written.
    std::chrono::seconds interval{10};
  };

  // `clock` outlives the budget.
  LineBudget(const Clock& clock, const Options& options) : clock_(clock), options_(options), left_(options.burst) {}

  // Admits one line and returns how many were dropped since the last admitted one; or drops the line and returns
  // nothing.
  std::optional<uint64_t> Admit();

 private:
  void Refill() RNICD_REQUIRES(mutex_);

  const Clock& clock_;
  const Options options_;
  Mutex mutex_;
  uint32_t left_ RNICD_GUARDED_BY(mutex_);
  uint64_t dropped_ RNICD_GUARDED_BY(mutex_) = 0;
  // The beginning of the interval that is running; meaningless while the whole burst is left.
  Instant refilled_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::log
