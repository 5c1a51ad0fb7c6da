#include <windows.h>

#include <bit>

#include "ring/processor.h"

namespace rnicd::ring {

// Processors are numbered within groups of at most 64.
uint32_t CurrentCpu() {
  constexpr uint32_t kGroupProcessorsMax = 64;
  PROCESSOR_NUMBER processor;
  GetCurrentProcessorNumberEx(&processor);
  return processor.Group * kGroupProcessorsMax + processor.Number + 1;
}

bool SeveralProcessors() {
  DWORD_PTR allowed = 0;
  DWORD_PTR present = 0;
  return GetProcessAffinityMask(GetCurrentProcess(), &allowed, &present) != 0 && std::popcount(allowed) > 1;
}

}  // namespace rnicd::ring
