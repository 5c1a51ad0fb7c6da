#pragma once

#include <cstdint>

#include "base/clock.h"

namespace rnicd::core {

// A daemon that has handed over and still serves the sessions that it had.
struct OlderGeneration {
  uint32_t generation = 0;
  uint64_t sessions = 0;
  // What is left of it ends then.
  Instant deadline;
};

}  // namespace rnicd::core
