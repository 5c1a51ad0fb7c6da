#pragma once

#include <chrono>
#include <cstdint>

namespace rnicd::rings {

// How long a thread looks for entries that have not come yet. Looking is much quicker than sleeping and being woken,
// but takes the processor from others.
struct SpinOptions {
  // How long a thread looks at a ring that is empty before it sleeps; 0: not at all.
  std::chrono::microseconds longest{20};
  // Share of a thread's time for that, in percent.
  uint32_t percent = 50;
};

}  // namespace rnicd::rings
