#pragma once

#include <cstddef>

namespace rnicd {

// Bytes that may be used of what malloc has allocated, at least those asked for; `memory` is not null. Threads: safe.
size_t AllocatedBytes(void* memory);

// Returns freed memory of the heap to the system. May take milliseconds. Threads: safe.
void ReturnFreedMemory();

}  // namespace rnicd
