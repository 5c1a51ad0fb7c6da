#include "base/heap.h"

#include <malloc.h>

namespace rnicd {

size_t AllocatedBytes(void* memory) { return malloc_usable_size(memory); }

void ReturnFreedMemory() { malloc_trim(0); }

}  // namespace rnicd
