#pragma once

#include <bitset>
#include <cstdint>

namespace rnicd::ring {

// The processor that the calling thread runs on, plus 1; 0 if unknown. Each side publishes it for the other.
uint32_t CurrentCpu();

// Processors by number, from 0; those above have no place in it.
using Processors = std::bitset<1024>;

// Those that the process may use.
Processors AllowedProcessors();

// Moves the calling thread, where the system allows. On Windows it does nothing.
void RunOn(const Processors& processors);

// One turn of a loop that waits for the other side: lets the other thread of a shared core run.
inline void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace rnicd::ring
