#include "base/system/heap.h"

#include <malloc.h>

namespace rnicd {

size_t AllocatedBytes(void* memory) { return malloc_usable_size(memory); }

void KeepHeapsSmall() {
  constexpr int kBytes = 256 << 10;
  mallopt(M_MMAP_THRESHOLD, kBytes);
  mallopt(M_TRIM_THRESHOLD, kBytes);
}

void ReturnFreedMemory() { malloc_trim(0); }

}  // namespace rnicd
