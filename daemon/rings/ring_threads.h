#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/ring/ring_host.h"
#include "daemon/rings/ring_thread.h"

namespace rnicd::rings {

// The threads that serve rings. A ring stays with its thread.
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
  RingThread& ThreadOf(const core::Ring& ring);

  std::vector<std::unique_ptr<RingThread>> threads_;
};

}  // namespace rnicd::rings
