#include "daemon/core/memory/pool_refiller.h"

#include <algorithm>
#include <utility>

#include "base/system/this_thread.h"

namespace rnicd::core {
namespace {

// Rests are added up until they exceed the delay of a timer.
constexpr std::chrono::milliseconds kWorthARest{4};

}  // namespace

std::chrono::nanoseconds RestAfter(const RefillBounds& bounds, uint64_t bytes, std::chrono::nanoseconds cpu) {
  const auto for_cpu = cpu * 100 / bounds.cpu_percent;
  const std::chrono::nanoseconds for_rate(bytes * 1'000'000'000 / bounds.bytes_per_second);
  return std::max<std::chrono::nanoseconds>(for_cpu, for_rate) - cpu;
}

PoolRefiller::PoolRefiller(MemoryPool& pool, const RefillBounds& bounds)
    : pool_(pool), bounds_(bounds), thread_([this] { Run(); }) {}

PoolRefiller::~PoolRefiller() {
  stopping_ = true;
  pool_.Wake();
  thread_.join();
}

void PoolRefiller::Run() {
  LowerPriority();
  std::chrono::nanoseconds used = ThreadTime();
  std::chrono::nanoseconds rest{0};
  while (!stopping_) {
    pool_.LetClientsMap();
    const MemoryPool::Piece piece = pool_.RefillPiece();
    const std::chrono::nanoseconds now = ThreadTime();
    pool_.AddRefillTime(now - used);
    rest += RestAfter(bounds_, piece.bytes, now - used);
    used = now;
    if (piece.bytes == 0) {
      pool_.WaitForWork(piece.blocked);
    } else if (rest >= kWorthARest) {
      pool_.Pause(std::exchange(rest, std::chrono::nanoseconds(0)));
    }
  }
}

}  // namespace rnicd::core
