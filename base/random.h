#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"

namespace rnicd {

// The only source of random numbers: the kernel in production, a seed in simulation. Threads: safe.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual uint64_t Next() = 0;
};

// Unpredictable numbers from getrandom(2), fetched a buffer at a time.
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
