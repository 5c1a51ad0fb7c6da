#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "daemon/core/tenant/rate_limiter.h"

namespace rnicd::door {

// New connections of each owner (core::OwnerOf), counted against a rate.
// Lifetime: `clock` outlives it.
// Threads:  one.
class ConnectRates {
 public:
  // 0 per second means no limit.
  ConnectRates(const Clock& clock, core::Rate rate) : clock_(clock), rate_(rate) {}

  // Counts a connection. True for one above the owner's rate.
  bool IsTooFast(const std::string& owner);
  size_t size() const { return rates_.size(); }

 private:
  const Clock& clock_;
  const core::Rate rate_;
  // Owners with connections in the last seconds.
  std::unordered_map<std::string, std::unique_ptr<core::RateLimiter>> rates_;
  size_t rates_to_prune_ = 0;
};

// Processes whose connections were refused a moment ago, and for how long they need not be looked at again. The period
// doubles with each refusal, up to 200 ms, and is forgotten after a quiet one. A process is known by its pid alone,
// which a hostile one can change only by the cost of a fork. Those whose pid is not visible here (0) are looked at each
// time.
// Threads: one.
class ConnectBackoff {
 public:
  // True when the process is to be turned away unseen.
  bool Holds(int32_t pid, Instant now) const { return Left(pid, now).count() > 0; }
  // How long that lasts, in whole milliseconds or a bit more; 0 when it is not.
  std::chrono::milliseconds Left(int32_t pid, Instant now) const;
  void Refused(int32_t pid, Instant now);
  void Admitted(int32_t pid) { entries_.erase(pid); }
  size_t size() const { return entries_.size(); }

  static constexpr std::chrono::milliseconds kFirst{10};
  static constexpr std::chrono::milliseconds kLongest{200};
  // Entries kept; a process beyond them is looked at each time.
  static constexpr size_t kEntriesMax = 4096;

 private:
  struct Entry {
    Instant until;
    std::chrono::milliseconds period;
  };

  std::unordered_map<int32_t, Entry> entries_;
};

}  // namespace rnicd::door
