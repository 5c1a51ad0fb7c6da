#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mutex.h"

namespace rnicd {

// The only source of random numbers: the kernel in production, a seed in simulation.
// Threads: safe.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual uint64_t Next() = 0;
};

// Unpredictable bytes of the kernel, at most 4 GiB. Ends the process when there are none: without them the daemon must
// not issue a token.
void FillFromKernel(std::span<std::byte> destination);

// Unpredictable numbers of the kernel, fetched a buffer at a time.
class KernelRandom final : public RandomSource {
 public:
  uint64_t Next() override;

 private:
  static constexpr size_t kBufferedNumbers = 512;

  Mutex mutex_;
  std::array<uint64_t, kBufferedNumbers> buffer_ RNICD_GUARDED_BY(mutex_) = {};
  size_t used_ RNICD_GUARDED_BY(mutex_) = kBufferedNumbers;
};

}  // namespace rnicd
