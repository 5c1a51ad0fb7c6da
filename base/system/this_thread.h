#pragma once

#include <chrono>

namespace rnicd {

// The calling thread gets the processor after all others from now on, where the system allows it. Where the daemon has
// a control group for processors, as under systemd and in a container, that is after the daemon's own threads only.
// Source: nice(2), which is for a thread on Linux.
void LowerPriority();

// The name that the system's tools show for the calling thread, at most 15 bytes. Source: pthread_setname_np(3).
void NameThread(const char* name);

// Processor time of the calling thread. Source: clock_gettime(2), CLOCK_THREAD_CPUTIME_ID.
std::chrono::nanoseconds ThreadTime();

}  // namespace rnicd
