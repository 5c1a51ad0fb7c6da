#include <benchmark/benchmark.h>

#include <utility>
#include <vector>

#include "daemon/core/memory/mdl_chain.h"
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

// Every second page of the memory, in as few regions as the longest chains allow: the most pieces to count.
void ScatteredRegisterDeregister(benchmark::State& state) {
  constexpr size_t kRegions = 16;
  InProcess core(2 * kRegions * core::kMaxMdlEntries * kNdkPageBytes);
  std::vector<std::pair<MemoryRegionId, std::vector<MdlEntry>>> regions(kRegions);
  uint64_t offset = 0;
  for (auto& [region, chain] : regions) {
    region = core.CreateMr();
    for (size_t entry = 0; entry < core::kMaxMdlEntries; ++entry, offset += 2 * kNdkPageBytes) {
      chain.push_back({.memory_id = core.memory(),
                       .byte_offset = offset,
                       .byte_count = kNdkPageBytes,
                       .virtual_address = VirtualAddress{kBase + entry * kNdkPageBytes}});
    }
  }
  for (auto _ : state) {
    bool all = true;
    for (const auto& [region, chain] : regions) {
      all = all && core.Register(region, chain, chain.size() * kNdkPageBytes);
    }
    for (const auto& [region, chain] : regions) {
      all = all && core.Deregister(region);
    }
    if (!all) {
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
  benchmark::RegisterBenchmark("core/register_every_second_page_of_1GiB", ScatteredRegisterDeregister);
  benchmark::RegisterBenchmark("core/register_1265_of_40KiB", Batch);
}

}  // namespace rnicd::bench
