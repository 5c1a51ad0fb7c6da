#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/core/ring/ring_host.h"
#include "daemon/rings/placement.h"
#include "daemon/rings/ring_thread.h"
#include "daemon/rings/spin_budget.h"
#include "daemon/rings/spin_options.h"

namespace rnicd::rings {

// The threads that serve rings. A ring stays with the thread that had the fewest when it came.
// Lifetime: outlives every session.
// Threads:  safe.
class RingThreads final : public core::RingHost {
 public:
  // `count`: 1 or more. `yield` lets other threads of the processor run. Errors: as RingThread::Start.
  static absl::StatusOr<std::unique_ptr<RingThreads>> Start(
      uint32_t count, const Clock& clock, const SpinOptions& spin,
      const std::function<void()>& yield = std::this_thread::yield);

  void Attach(std::shared_ptr<core::Ring> ring) override;
  void Detach(const std::shared_ptr<core::Ring>& ring, std::function<void()> done) override;
  core::RingCounts Counts() const override;

  size_t size() const { return threads_.size(); }
  // Runs the task on one of them, between two turns.
  void Post(size_t index, std::function<void()> task) { threads_[index]->Post(std::move(task)); }

 private:
  RingThreads(size_t count, const SpinOptions& spin, Instant now)
      : budget_(spin, now), placement_(count), rings_of_(count) {}

  // The index of its thread; any of a ring that was never attached.
  size_t Assign(const core::Ring* ring);
  size_t Release(const core::Ring* ring);

  SpinBudget budget_;
  Placement placement_;
  Mutex mutex_;
  // Rings of each thread, and the thread of each ring.
  std::vector<size_t> rings_of_ RNICD_GUARDED_BY(mutex_);
  std::unordered_map<const core::Ring*, size_t> thread_of_ RNICD_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<RingThread>> threads_;
};

}  // namespace rnicd::rings
