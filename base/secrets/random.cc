#include "base/secrets/random.h"

#include <span>
#include <utility>

namespace rnicd {

uint64_t KernelRandom::Next() {
  MutexLock lock(mutex_);
  if (used_ == buffer_.size()) {
    FillFromKernel(std::as_writable_bytes(std::span(buffer_)));
    used_ = 0;
  }
  // Erase the returned number from the buffer: it may become a token.
  return std::exchange(buffer_[used_++], 0);
}

}  // namespace rnicd
