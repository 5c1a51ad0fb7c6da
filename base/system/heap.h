#pragma once

#include <cstddef>

namespace rnicd {

// Bytes that may be used of what malloc has allocated, at least those asked for; `memory` is not null. Threads: safe.
size_t AllocatedBytes(void* memory);

// Makes malloc return memory at the end of a heap, and large blocks, to the system as soon as they are freed. Without
// fixed bounds glibc adapts its thresholds to the largest block that was ever freed, here a client's message of 4 MiB,
// and keeps 8 MiB of each heap permanently. Does nothing on Windows. Must be called while the process has one thread.
// Source: mallopt(3).
void KeepHeapsSmall();

// Returns freed memory of the heap to the system. May take milliseconds. Threads: safe.
void ReturnFreedMemory();

}  // namespace rnicd
