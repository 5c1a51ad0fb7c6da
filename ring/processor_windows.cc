#include <windows.h>

#include "ring/processor.h"

namespace rnicd::ring {

// Processors are numbered within groups of at most 64.
uint32_t CurrentCpu() {
  constexpr uint32_t kGroupProcessorsMax = 64;
  PROCESSOR_NUMBER processor;
  GetCurrentProcessorNumberEx(&processor);
  return processor.Group * kGroupProcessorsMax + processor.Number + 1;
}

// Those of the first group.
Processors AllowedProcessors() {
  DWORD_PTR allowed = 0;
  DWORD_PTR present = 0;
  return GetProcessAffinityMask(GetCurrentProcess(), &allowed, &present) != 0 ? Processors(allowed) : Processors();
}

void RunOn(const Processors& /*processors*/) {}

}  // namespace rnicd::ring
