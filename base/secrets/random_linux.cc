#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#include "base/secrets/random.h"

namespace rnicd {

// Source: getrandom(2).
void FillFromKernel(std::span<std::byte> destination) {
  while (!destination.empty()) {
    const ssize_t got = getrandom(destination.data(), destination.size(), 0);
    if (got < 0 && errno != EINTR) {
      std::abort();
    }
    if (got > 0) {
      destination = destination.subspan(static_cast<size_t>(got));
    }
  }
}

}  // namespace rnicd
