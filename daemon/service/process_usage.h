#pragma once

#include <cstdint>

namespace rnicd::service {

// What this process holds of the machine, from /proc/self; zeros where that cannot be read.
struct ProcessUsage {
  uint64_t open_fds = 0;
  uint64_t threads = 0;
  uint64_t resident_bytes = 0;
};

ProcessUsage ReadProcessUsage();

}  // namespace rnicd::service
