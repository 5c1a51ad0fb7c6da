#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "base/clock.h"

namespace rnicd::rings {

// Lets clients run that share the processor of a busy thread: one that waits for its next outcome can only read it, and
// submit again, when the thread leaves the processor, and with entries of other clients it would not for a whole time
// slice of the scheduler. What else wants the processor runs then too; where that takes long, it is not let in again
// for twenty times as long.
// Threads: one at a time.
class GiveWay {
 public:
  // `yield` returns when the thread has its processor again. The clock outlives this.
  GiveWay(const Clock& clock, std::function<void()> yield) : clock_(clock), yield_(std::move(yield)) {}

  // There is an outcome for a client of this processor.
  void ClientWaits(Instant now) { waiting_since_ = waiting_since_.value_or(now); }
  // The thread sleeps now, so that they run anyway.
  void Left() { waiting_since_.reset(); }
  // To be called between turns.
  void Run(Instant now);

 private:
  const Clock& clock_;
  const std::function<void()> yield_;
  std::optional<Instant> waiting_since_;
  Instant not_before_;
};

}  // namespace rnicd::rings
