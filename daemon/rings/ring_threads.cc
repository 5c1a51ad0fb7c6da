#include "daemon/rings/ring_threads.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace rnicd::rings {

absl::StatusOr<std::unique_ptr<RingThreads>> RingThreads::Start(uint32_t count, const Clock& clock,
                                                                const SpinOptions& spin,
                                                                const std::function<void()>& yield) {
  std::unique_ptr<RingThreads> threads(new RingThreads(count, spin, clock.Now()));
  for (uint32_t index = 0; index < count; ++index) {
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<RingThread> thread,
                           RingThread::Start(clock, threads->budget_, ThreadPlace(threads->placement_, index), yield));
    threads->threads_.push_back(std::move(thread));
  }
  return threads;
}

size_t RingThreads::Assign(const core::Ring* ring) {
  MutexLock lock(mutex_);
  const auto fewest = std::min_element(rings_of_.begin(), rings_of_.end());
  ++*fewest;
  return thread_of_[ring] = static_cast<size_t>(fewest - rings_of_.begin());
}

size_t RingThreads::Release(const core::Ring* ring) {
  MutexLock lock(mutex_);
  const auto assigned = thread_of_.extract(ring);
  if (assigned.empty()) {
    return 0;
  }
  --rings_of_[assigned.mapped()];
  return assigned.mapped();
}

void RingThreads::Attach(std::shared_ptr<core::Ring> ring) {
  RingThread& thread = *threads_[Assign(ring.get())];
  thread.Attach(std::move(ring));
}

void RingThreads::Detach(const std::shared_ptr<core::Ring>& ring, std::function<void()> done) {
  threads_[Release(ring.get())]->Detach(ring, std::move(done));
}

core::RingCounts RingThreads::Counts() const {
  core::RingCounts sum;
  for (const std::unique_ptr<RingThread>& thread : threads_) {
    const core::RingCounts counts = thread->Counts();
    sum.entries += counts.entries;
    sum.requests += counts.requests;
    sum.doorbells += counts.doorbells;
    sum.refused += counts.refused;
    sum.empty_wakeups += counts.empty_wakeups;
    sum.pauses += counts.pauses;
    sum.broken += counts.broken;
    sum.spinning += counts.spinning;
  }
  return sum;
}

}  // namespace rnicd::rings
