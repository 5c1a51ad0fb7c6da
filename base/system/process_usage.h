#pragma once

#include <cstdint>

namespace rnicd {

// Resource usage of this process.
struct ProcessUsage {
  // Descriptors; on Windows handles.
  uint64_t open_fds = 0;
  uint64_t max_fds = 0;
  uint64_t threads = 0;
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  // CPU time in user and kernel mode, in seconds.
  double cpu_seconds = 0;
};

// Fields that cannot be read stay 0.
ProcessUsage ReadProcessUsage();
// Its cpu_seconds alone, in much less time where many descriptors are open.
double ReadProcessCpu();

// Start of this process, in seconds of Unix time; 0 where it cannot be read. To be read once: on Linux it is the
// difference of two clocks, so that another reading differs by microseconds, or by a step of the clock.
double ReadProcessStart();

}  // namespace rnicd
