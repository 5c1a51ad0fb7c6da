#include <benchmark/benchmark.h>

#include <vector>

#include "tests/bench/bench.h"
#include "tests/bench/in_process.h"

namespace rnicd::bench {
namespace {

void RegisterDeregister(benchmark::State& state) {
  const auto bytes = static_cast<uint64_t>(state.range(0));
  InProcess core(bytes);
  const MemoryRegionId region = core.CreateMr();
  for (auto _ : state) {
    if (!core.Register(region, 0, bytes) || !core.Deregister(region)) {
      state.SkipWithError("refused");
      return;
    }
  }
}

void Batch(benchmark::State& state) {
  InProcess core(kBatchRegions * kBatchRegionBytes);
  std::vector<MemoryRegionId> regions;
  for (int index = 0; index < kBatchRegions; ++index) {
    regions.push_back(core.CreateMr());
  }
  for (auto _ : state) {
    for (size_t index = 0; index < regions.size(); ++index) {
      benchmark::DoNotOptimize(core.Register(regions[index], index * kBatchRegionBytes, kBatchRegionBytes));
    }
    state.PauseTiming();
    for (const MemoryRegionId region : regions) {
      benchmark::DoNotOptimize(core.Deregister(region));
    }
    state.ResumeTiming();
  }
}

}  // namespace

void AddCoreRows() {
  auto* row = benchmark::RegisterBenchmark("core/register_deregister", RegisterDeregister);
  for (const int64_t size : kSizes) {
    row->Arg(size);
  }
  benchmark::RegisterBenchmark("core/register_1265_of_40KiB", Batch);
}

}  // namespace rnicd::bench
