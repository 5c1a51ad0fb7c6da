#include <malloc.h>
#include <windows.h>

#include <cstdlib>

#include "base/secrets/wipe.h"

namespace rnicd {

void Wipe(void* bytes, size_t size) noexcept { SecureZeroMemory(bytes, size); }

void WipeAndFree(void* memory) noexcept {
  if (memory != nullptr) {
    SecureZeroMemory(memory, _msize(memory));
    std::free(memory);
  }
}

}  // namespace rnicd
