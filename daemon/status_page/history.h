#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/observation.h"

namespace rnicd::status_page {

// State of the node at one moment, and rates per second since the previous point.
struct Point {
  uint64_t pinned_bytes = 0;
  uint64_t registered_bytes = 0;
  uint64_t sessions = 0;
  // Successful registrations per second.
  double registrations = 0;
  // Refusals and failures per second, as RecentFailures lists them.
  double failures = 0;
  double calls = 0;
};

// The points of the last quarter of an hour.
// Threads: safe. Events are counted without a lock.
class History final : public core::Observer {
 public:
  static constexpr std::chrono::seconds kInterval{5};
  static constexpr size_t kMost = 180;

  // Handles the three events whose rates a Point has, and no other.
  void Observe(const core::Observation& observation) override;
  bool HeedsSuccesses() const override { return false; }

  // Adds a point. `node` is the ledger of the whole node. The first point has no rates, because no other precedes it.
  void Sample(Instant now, const core::Ledger& node);

  // All points, oldest first.
  std::vector<Point> Points() const;

 private:
  struct Counts {
    uint64_t registrations = 0;
    uint64_t failures = 0;
    uint64_t calls = 0;
  };

  static void Count(std::atomic<uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }
  Counts Read() const;

  std::atomic<uint64_t> registrations_{0};
  std::atomic<uint64_t> failures_{0};
  std::atomic<uint64_t> calls_{0};

  mutable Mutex mutex_;
  std::deque<Point> points_ RNICD_GUARDED_BY(mutex_);
  std::optional<Instant> sampled_ RNICD_GUARDED_BY(mutex_);
  Counts before_ RNICD_GUARDED_BY(mutex_);
};

// Samples at once and then once each interval, on its own thread.
// Lifetime: history, clock and ledger outlive it; the destructor joins without waiting for the next point.
class Sampler {
 public:
  Sampler(History& history, const Clock& clock, const core::Ledger& node,
          std::chrono::nanoseconds interval = History::kInterval);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

 private:
  void Run();

  History& history_;
  const Clock& clock_;
  const core::Ledger& node_;
  const std::chrono::nanoseconds interval_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rnicd::status_page
