#pragma once

#include <cstdint>

namespace rnicd::inline client {

// The number of this process, without a system call after the first time: what work requests ask before each use of
// shared memory. A child made by fork gets its own.
// Threads: safe.
int32_t ThisProcess();

}  // namespace rnicd::inline client
