#include <malloc.h>

#include <cstdlib>
#include <cstring>

#include "base/secrets/wipe.h"

namespace rnicd {

void Wipe(void* bytes, size_t size) noexcept { explicit_bzero(bytes, size); }

void WipeAndFree(void* memory) noexcept {
  if (memory != nullptr) {
    explicit_bzero(memory, malloc_usable_size(memory));
    std::free(memory);
  }
}

}  // namespace rnicd
