#pragma once

#include <cstddef>

namespace rnicd {

// Clears bytes that held a secret; the compiler never leaves it out. Threads: safe.
void Wipe(void* bytes, size_t size) noexcept;

// Frees what malloc has allocated, and clears it first: what a secret was copied to is not to wait in the heap for
// somebody who takes the process over. May be null. Threads: safe.
void WipeAndFree(void* memory) noexcept;

// Clears some of the stack below the caller, where functions that have returned left copies of what they worked on.
// To be called where little is on the stack, so that it reaches far.
void WipeStack() noexcept;

}  // namespace rnicd
