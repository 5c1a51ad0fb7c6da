#include <malloc.h>
#include <windows.h>

#include <array>
#include <cstddef>
#include <cstdlib>

#include "base/secrets/wipe.h"

namespace rnicd {
namespace {

// More than a request's functions use from an event loop on.
constexpr size_t kStackBytes = size_t{16} << 10;

}  // namespace

void Wipe(void* bytes, size_t size) noexcept { SecureZeroMemory(bytes, size); }

void WipeAndFree(void* memory) noexcept {
  if (memory != nullptr) {
    SecureZeroMemory(memory, _msize(memory));
    std::free(memory);
  }
}

[[gnu::noinline]] void WipeStack() noexcept {
  std::array<std::byte, kStackBytes> bytes;
  SecureZeroMemory(bytes.data(), bytes.size());
}

}  // namespace rnicd
