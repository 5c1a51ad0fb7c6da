#include "base/system/heap.h"

#include <malloc.h>

namespace rnicd {

size_t AllocatedBytes(void* memory) { return _msize(memory); }

void KeepHeapsSmall() {}

void ReturnFreedMemory() { _heapmin(); }

}  // namespace rnicd
