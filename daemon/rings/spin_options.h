#pragma once

#include <chrono>
#include <cstdint>

namespace rnicd::rings {

// How long a thread polls for entries that have not arrived yet. Polling reacts much faster than a wake-up from sleep,
// but takes the processor from other threads.
struct SpinOptions {
  // How long a thread polls an empty ring before it sleeps; 0: no polling.
  std::chrono::microseconds longest{20};
  // Share of one processor for that, of all threads together, in percent.
  uint32_t percent = 50;
};

}  // namespace rnicd::rings
