#pragma once

#include <cstdint>

#include "base/files/unique_fd.h"

namespace rnicd::bench {

// A process that is woken, and wakes this one, as a ring's daemon and client do, and does nothing else: an eventfd that
// is watched edge-triggered, and a futex. What remains of a row beyond a round trip is work, not waiting.
class BareWakeups {
 public:
  // Keeps the processor on which it is started.
  BareWakeups();
  // There and back. The other process ends with this one.
  void RoundTrip();

 private:
  // Shared with the other process.
  uint32_t* word_ = nullptr;
  UniqueFd doorbell_;
};

}  // namespace rnicd::bench
