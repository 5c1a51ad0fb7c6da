#include <windows.h>
// Behind windows.h, whose types it uses.
#include <bcrypt.h>

#include <cstdlib>

#include "base/secrets/random.h"

namespace rnicd {

void FillFromKernel(std::span<std::byte> destination) {
  if (BCryptGenRandom(nullptr, reinterpret_cast<PUCHAR>(destination.data()), static_cast<ULONG>(destination.size()),
                      BCRYPT_USE_SYSTEM_PREFERRED_RNG) != 0) {
    std::abort();
  }
}

}  // namespace rnicd
