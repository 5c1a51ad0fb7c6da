#include <sched.h>

#include "ring/processor.h"

namespace rnicd::ring {

uint32_t CurrentCpu() { return static_cast<uint32_t>(sched_getcpu() + 1); }

}  // namespace rnicd::ring
