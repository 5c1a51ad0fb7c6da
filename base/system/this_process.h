#pragma once

#include <cstdint>
#include <string>

namespace rnicd {

// Number of this process among those it can see, without a system call after the first time. A child made by fork gets
// its own. Threads: safe.
int32_t ProcessId();

// Bytes of the machine's memory.
uint64_t MachineMemoryBytes();

// Name of this machine; empty when it has none.
std::string HostName();

// Release of the running kernel, as in "6.1.0-44-amd64". Source: uname(2).
std::string KernelRelease();

}  // namespace rnicd
