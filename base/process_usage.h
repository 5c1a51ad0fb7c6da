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
  // Start of the process, in seconds of Unix time.
  double started_seconds = 0;
};

// Fields that cannot be read stay 0.
ProcessUsage ReadProcessUsage();

}  // namespace rnicd
