#pragma once

#include <cstdint>

namespace rnicd {

// What this process takes of the machine.
struct ProcessUsage {
  uint64_t open_fds = 0;
  uint64_t max_fds = 0;
  uint64_t threads = 0;
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  // Of user and system, in seconds.
  double cpu_seconds = 0;
  // Unix time.
  double started_seconds = 0;
};

// What cannot be read stays 0. Source: proc(5), getrlimit(2).
ProcessUsage ReadProcessUsage();

}  // namespace rnicd
