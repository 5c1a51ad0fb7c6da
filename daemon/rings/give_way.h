#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "base/clock.h"

namespace rnicd::rings {

// Yields the processor of a busy thread to the clients that share it: a client there cannot read its outcome and submit
// again until the thread yields, and with entries of other clients the thread would run for a whole time slice of the
// scheduler. Other threads run then, too: after a long yield the next one is delayed by twenty times its duration.
// Threads: one at a time.
class GiveWay {
 public:
  // `yield` returns when the thread has its processor again. The clock outlives this.
  GiveWay(const Clock& clock, std::function<void()> yield) : clock_(clock), yield_(std::move(yield)) {}

  // A client of this processor has an outcome to read.
  void ClientWaits(Instant now) { waiting_since_ = waiting_since_.value_or(now); }
  // The thread sleeps now, so the clients run anyway.
  void Left() { waiting_since_.reset(); }
  // Yields if a client waits and no delay is in force. Called between turns.
  void Run(Instant now);

 private:
  const Clock& clock_;
  const std::function<void()> yield_;
  std::optional<Instant> waiting_since_;
  Instant not_before_;
};

}  // namespace rnicd::rings
