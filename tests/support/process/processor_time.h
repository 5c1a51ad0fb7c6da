#pragma once

#include <sys/types.h>

#include <chrono>

namespace rnicd::test {

// User and system time of a process so far, in steps of the kernel's clock; zero if there is none.
std::chrono::milliseconds ProcessorTimeOf(pid_t pid);

}  // namespace rnicd::test
