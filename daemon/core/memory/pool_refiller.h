#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "daemon/core/memory/memory_pool.h"

namespace rnicd::core {

// How much refilling may take from the machine.
struct RefillBounds {
  // Percent of one core.
  uint32_t cpu_percent = 50;
  uint64_t bytes_per_second = uint64_t{1} << 30;
};

// The thread that refills a pool, at the lowest priority. It sleeps while nothing is missing.
// Lifetime: the destructor joins; outlived by the pool.
class PoolRefiller {
 public:
  PoolRefiller(MemoryPool& pool, const RefillBounds& bounds);
  PoolRefiller(const PoolRefiller&) = delete;
  PoolRefiller& operator=(const PoolRefiller&) = delete;
  ~PoolRefiller();

 private:
  void Run();

  MemoryPool& pool_;
  const RefillBounds bounds_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// How long the thread must rest after it made `bytes` in `cpu` of processor time.
std::chrono::nanoseconds RestAfter(const RefillBounds& bounds, uint64_t bytes, std::chrono::nanoseconds cpu);

}  // namespace rnicd::core
