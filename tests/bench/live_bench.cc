// Whether operations slow down when very many regions are live.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>

#include "tests/bench/fast_queue.h"

namespace rnicd::bench {
namespace {

constexpr size_t kBatch = 1000;

// `count` registered regions of one page each. Created once per count, because a million take seconds.
FastQueue& LiveRegions(int64_t count) {
  static std::unique_ptr<FastQueue> live;
  static int64_t live_count = 0;
  if (live_count != count) {
    live.reset();
    live = std::make_unique<FastQueue>(static_cast<int>(count), 1, false);
    live_count = count;
    for (size_t first = 0; first < static_cast<size_t>(count); first += kBatch) {
      benchmark::DoNotOptimize(live->Register(first, kBatch));
    }
  }
  return *live;
}

template <typename Operation>
void OnLiveRegions(benchmark::State& state, const Operation& operation) {
  FastQueue& live = LiveRegions(state.range(0));
  std::minstd_rand random(1);
  for (auto _ : state) {
    if (!operation(live, random() % static_cast<uint64_t>(state.range(0)))) {
      state.SkipWithError("refused");
      return;
    }
  }
}

bool InvalidateAndRegister(FastQueue& live, size_t index) { return live.InvalidateAndRegister(index); }

bool GetRemoteToken(FastQueue& live, size_t index) {
  return live.core().session().Begin()->regions().GetRemoteToken(live.region(index)).ok();
}

// The whole life of one more region.
bool CreateRegisterClose(FastQueue& live, size_t /*index*/) {
  const MemoryRegionId region = live.core().CreateMr();
  return live.core().Register(region, 0, 4 * kKiB) &&
         live.core().session().Begin()->regions().Close(region, {}, nullptr).ok();
}

}  // namespace

void AddLiveRegionRows() {
  // All rows of one number together: see LiveRegions.
  for (const int64_t count : {int64_t{1000}, int64_t{1000000}}) {
    const struct {
      const char* name;
      bool (*operation)(FastQueue&, size_t);
    } kRows[] = {{"live/invalidate_and_fast_register", InvalidateAndRegister},
                 {"live/get_remote_token", GetRemoteToken},
                 {"live/create_register_close", CreateRegisterClose}};
    for (const auto& row : kRows) {
      benchmark::RegisterBenchmark(row.name, [row](benchmark::State& state) {
        OnLiveRegions(state, row.operation);
      })->Arg(count);
    }
  }
}

}  // namespace rnicd::bench
