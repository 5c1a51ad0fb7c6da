#pragma once

// Counts the heap allocations of a program. Replaces operator new in it: include this in one file of a program, whose
// name ends in _allocation_test.cc, which the thread sanitizer's build leaves out. The memory still comes from malloc,
// so that other sanitizers see it.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace rnicd {

inline std::atomic<uint64_t> counted_allocations{0};

}  // namespace rnicd

// NOLINTBEGIN(misc-definitions-in-headers): included by one file of a program.
void* operator new(size_t bytes) {
  ++rnicd::counted_allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes); memory != nullptr) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*bytes*/) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t /*bytes*/) noexcept { std::free(memory); }
// NOLINTEND(misc-definitions-in-headers)
