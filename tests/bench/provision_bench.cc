// 1,265 regions of 40 KiB, from nothing to tokens: a client of librnicd, against the soft card alone in this process.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "base/secrets/random.h"
#include "base/system/os.h"
#include "client/cpp/client.h"
#include "provider/soft/soft_provider.h"
#include "tests/bench/bench.h"

namespace rnicd::bench {
namespace {

constexpr uint64_t kBytes = kBatchRegions * kBatchRegionBytes;

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The least that any owner of a card would do: a file of zeros that cannot shrink, mapped here, and its regions.
class CardAlone {
 public:
  bool Allocate() {
    file_ = *SystemOs().CreateMemoryFile(kBytes, kNdkPageBytes);
    memory_ = *SystemOs().Map(file_.get(), kBytes);
    return SystemOs().Populate(memory_).ok() &&
           SystemOs().AddSeals(file_.get(), {.shrink = true, .grow = true, .future_write = true, .seal = true}).ok();
  }
  bool Register() {
    for (int index = 0; index < kBatchRegions; ++index) {
      const std::span<std::byte> bytes =
          memory_.subspan(static_cast<uint64_t>(index) * kBatchRegionBytes, kBatchRegionBytes);
      auto region = domain_->RegisterMemory({.base = {reinterpret_cast<uintptr_t>(bytes.data())},
                                             .length = bytes.size(),
                                             .runs = std::span(&bytes, 1),
                                             .rights = {.local_write = true, .remote_write = true}});
      if (!region.ok()) {
        return false;
      }
      regions_.push_back(*std::move(region));
    }
    return true;
  }
  void Deregister() { regions_.clear(); }
  void Free() {
    Deregister();
    SystemOs().Unmap(memory_).IgnoreError();
    file_.Reset(-1);
  }

 private:
  KernelRandom random_;
  provider::SoftProvider provider_{{}, random_};
  std::unique_ptr<provider::DeviceAdapter> adapter_ = *provider_.OpenAdapter("soft0");
  std::unique_ptr<provider::DeviceProtectionDomain> domain_ = *adapter_->CreateProtectionDomain();
  UniqueFd file_;
  std::span<std::byte> memory_;
  std::vector<std::unique_ptr<provider::DeviceMemoryRegion>> regions_;
};

void Register(benchmark::State& state) {
  CardAlone card;
  if (!card.Allocate()) {
    state.SkipWithError("no memory");
    return;
  }
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const bool registered = card.Register();
    state.SetIterationTime(SecondsSince(begin));
    card.Deregister();
    if (!registered) {
      state.SkipWithError("refused");
      return;
    }
  }
  card.Free();
}

void FromNothing(benchmark::State& state) {
  CardAlone card;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const bool made = card.Allocate() && card.Register();
    state.SetIterationTime(SecondsSince(begin));
    card.Free();
    if (!made) {
      state.SkipWithError("refused");
      return;
    }
  }
}

std::vector<RegionRange> Ranges() {
  std::vector<RegionRange> ranges;
  for (uint64_t index = 0; index < kBatchRegions; ++index) {
    ranges.push_back({.offset = index * kBatchRegionBytes, .length = kBatchRegionBytes, .flags = kMrFlagRemoteWrite});
  }
  return ranges;
}

// False if any range has no region.
bool CloseAll(client::MemoryRegion::Outcomes outcomes) {
  std::vector<client::MemoryRegion> regions;
  for (absl::StatusOr<client::MemoryRegion>& outcome : outcomes) {
    if (outcome.ok()) {
      regions.push_back(*std::move(outcome));
    }
  }
  const bool all = regions.size() == outcomes.size();
  return client::MemoryRegion::CloseBatch(std::move(regions)).ok() && all;
}

void ProvisionSealed(benchmark::State& state, const client::Client& user) {
  const std::vector<RegionRange> ranges = Ranges();
  const auto memory = client::Memory::Allocate(user, {.size = kBytes});
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    auto regions = client::MemoryRegion::Provision(*memory, ranges);
    state.SetIterationTime(SecondsSince(begin));
    if (!regions.ok() || !CloseAll(*std::move(regions))) {
      state.SkipWithError("refused");
      return;
    }
  }
}

// With and without a page table of the client's own, which the card alone has by its only mapping.
void ProvisionFromNothing(benchmark::State& state, const client::Client& user) {
  const std::vector<RegionRange> ranges = Ranges();
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    auto ready = client::MemoryRegion::Provision(user, {.size = kBytes, .populate = state.range(0) != 0}, ranges);
    state.SetIterationTime(SecondsSince(begin));
    if (!ready.ok() || !CloseAll(std::move(ready->regions)) || !ready->memory.Release().ok()) {
      state.SkipWithError("refused");
      return;
    }
  }
}

}  // namespace

void AddProvisionRows(const test::DaemonProcess& daemon) {
  auto connected = client::Client::Connect(
      {.socket_dir = daemon.socket_dir(), .label = "bench", .data_path = client::DataPath::kCalls});
  const auto user = std::make_shared<absl::StatusOr<client::Client>>(std::move(connected));
  const auto with = [user](void (*run)(benchmark::State&, const client::Client&)) {
    return [run, user](benchmark::State& state) {
      if (!user->ok()) {
        state.SkipWithError("cannot connect");
        return;
      }
      run(state, **user);
    };
  };
  benchmark::RegisterBenchmark("provision/card_register", Register)->UseManualTime();
  benchmark::RegisterBenchmark("provision/card_from_nothing", FromNothing)->UseManualTime();
  benchmark::RegisterBenchmark("provision/one_call", with(ProvisionSealed))->UseManualTime();
  benchmark::RegisterBenchmark("provision/from_nothing", with(ProvisionFromNothing))->Arg(0)->Arg(1)->UseManualTime();
}

}  // namespace rnicd::bench
