#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace rnicd {
namespace {

// Without randomness the daemon must not issue a token, so a failure of getrandom(2) ends the process.
void Fill(void* destination, size_t bytes) {
  auto* next = static_cast<std::byte*>(destination);
  while (bytes > 0) {
    const ssize_t got = getrandom(next, bytes, 0);
    if (got < 0 && errno != EINTR) {
      std::abort();
    }
    if (got > 0) {
      next += got;
      bytes -= static_cast<size_t>(got);
    }
  }
}

}  // namespace

uint64_t KernelRandom::Next() {
  MutexLock lock(mutex_);
  if (used_ == buffer_.size()) {
    Fill(buffer_.data(), sizeof(buffer_));
    used_ = 0;
  }
  // Erase the returned number from the buffer: it may become a token.
  return std::exchange(buffer_[used_++], 0);
}

}  // namespace rnicd
