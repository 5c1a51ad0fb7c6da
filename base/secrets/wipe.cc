#include "base/secrets/wipe.h"

#include <array>

namespace rnicd {
namespace {

// More than a request's functions use from an event loop on.
constexpr size_t kStackBytes = size_t{16} << 10;

}  // namespace

[[gnu::noinline]] void WipeStack() noexcept {
  std::array<std::byte, kStackBytes> bytes;
  Wipe(bytes.data(), bytes.size());
}

}  // namespace rnicd
