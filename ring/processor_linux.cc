#include <sched.h>

#include "ring/processor.h"

namespace rnicd::ring {

static_assert(Processors().size() == CPU_SETSIZE);

uint32_t CurrentCpu() { return static_cast<uint32_t>(sched_getcpu() + 1); }

Processors AllowedProcessors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  Processors processors;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (size_t number = 0; number < CPU_SETSIZE; ++number) {
      processors[number] = CPU_ISSET(number, &allowed);
    }
  }
  return processors;
}

void RunOn(const Processors& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t number = 0; number < CPU_SETSIZE; ++number) {
    if (processors[number]) {
      CPU_SET(number, &set);
    }
  }
  (void)sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace rnicd::ring
