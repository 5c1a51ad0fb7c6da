#pragma once

#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "daemon/core/request/event_queue.h"

namespace rnicd::core {

// Reports the progress of a long allocation as events of its session: at most once for each 64th of it, and of 64 MiB.
// Threads: safe.
class ProgressReport final : public EventSource, public std::enable_shared_from_this<ProgressReport> {
 public:
  // `events` outlives this.
  ProgressReport(EventQueue& events, uint64_t context, uint64_t size)
      : events_(events), context_(context), size_(size) {}

  void Note(uint64_t populated);
  // Ends the reports: the response reports the outcome.
  void End() { events_.Withdraw(*this); }
  Taken TakeEvent() override;

 private:
  EventQueue& events_;
  const uint64_t context_;
  const uint64_t size_;
  Mutex mutex_;
  uint64_t populated_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t reported_ RNICD_GUARDED_BY(mutex_) = 0;
  bool queued_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::core
