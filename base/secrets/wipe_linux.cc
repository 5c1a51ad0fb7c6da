#include <malloc.h>
#include <string.h>

#include <array>
#include <cstddef>
#include <cstdlib>

#include "base/secrets/wipe.h"

namespace rnicd {
namespace {

// More than a request's functions use from an event loop on.
constexpr size_t kStackBytes = size_t{16} << 10;

}  // namespace

void Wipe(void* bytes, size_t size) noexcept { explicit_bzero(bytes, size); }

void WipeAndFree(void* memory) noexcept {
  if (memory != nullptr) {
    explicit_bzero(memory, malloc_usable_size(memory));
    std::free(memory);
  }
}

[[gnu::noinline]] void WipeStack() noexcept {
  std::array<std::byte, kStackBytes> bytes;
  explicit_bzero(bytes.data(), bytes.size());
}

}  // namespace rnicd
