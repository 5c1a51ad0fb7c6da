#include "daemon/rings/ring_threads.h"

#include <utility>

#include "base/status.h"

namespace rnicd::rings {

absl::StatusOr<std::unique_ptr<RingThreads>> RingThreads::Start(uint32_t count, const Clock& clock,
                                                                const SpinOptions& spin,
                                                                const std::function<void()>& yield) {
  auto threads = std::make_unique<RingThreads>();
  for (uint32_t index = 0; index < count; ++index) {
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<RingThread> thread, RingThread::Start(clock, spin, yield));
    threads->threads_.push_back(std::move(thread));
  }
  return threads;
}

// The upper half of an id counts on from a random number.
RingThread& RingThreads::ThreadOf(const core::Ring& ring) {
  return *threads_[(ring.id().value >> 32) % threads_.size()];
}

void RingThreads::Attach(std::shared_ptr<core::Ring> ring) {
  RingThread& thread = ThreadOf(*ring);
  thread.Attach(std::move(ring));
}

void RingThreads::Detach(const std::shared_ptr<core::Ring>& ring, std::function<void()> done) {
  ThreadOf(*ring).Detach(ring, std::move(done));
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
