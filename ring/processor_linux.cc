#include <sched.h>

#include "ring/processor.h"

namespace rnicd::ring {

uint32_t CurrentCpu() { return static_cast<uint32_t>(sched_getcpu() + 1); }

bool SeveralProcessors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) > 1;
}

}  // namespace rnicd::ring
