#pragma once

#include <cstdint>
#include <string>

namespace rnicd {

// Number of this process among those it can see.
int32_t ProcessId();

// Release of the running kernel, as in "6.1.0-44-amd64". Source: uname(2).
std::string KernelRelease();

}  // namespace rnicd
