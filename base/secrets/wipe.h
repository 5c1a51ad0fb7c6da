#pragma once

#include <cstddef>

namespace rnicd {

// Clears bytes that held a secret; the compiler never leaves it out. Threads: safe.
void Wipe(void* bytes, size_t size) noexcept;

// Frees memory from malloc, and clears it first, so that no copy of a secret stays in the heap for an attacker who
// takes over the process. May be null. Threads: safe.
void WipeAndFree(void* memory) noexcept;

// Clears some of the stack below the caller, where functions that have returned left copies of what they worked on.
// To be called where little is on the stack, so that it reaches far.
void WipeStack() noexcept;

}  // namespace rnicd
