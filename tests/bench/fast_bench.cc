// FastRegister and Invalidate in process: through core, and on the provider alone.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <string>

#include "tests/bench/fast_queue.h"

namespace rnicd::bench {
namespace {

void Chain(benchmark::State& state, int chain) {
  FastQueue queue(chain, static_cast<uint64_t>(state.range(0)), state.range(1) != 0);
  for (auto _ : state) {
    if (!queue.ready() || !queue.RegisterAndInvalidate(0, static_cast<size_t>(chain))) {
      state.SkipWithError("refused");
      return;
    }
  }
}

// The cost of the provider alone: the same requests, posted to it directly.
class BareProvider final : private provider::QueuePairListener {
 public:
  explicit BareProvider(uint64_t pages) : memory_(pages * kNdkPageBytes) {
    adapter_ = *provider_.OpenAdapter("soft0");
    domain_ = *adapter_->CreateProtectionDomain();
    queue_ = *adapter_->CreateCompletionQueue(1024);
    pair_ = *domain_->CreateQueuePair({.initiator_depth = 1024}, *queue_, *queue_, *this);
    connected_ = pair_->Connect(pair_->address()).ok();
    for (auto& region : regions_) {
      region = *domain_->CreateFastRegion(static_cast<uint32_t>(pages), true);
    }
  }

  bool RegisterAndInvalidate() {
    bool ok = connected_;
    for (const auto& region : regions_) {
      ok = pair_
               ->Enqueue({.silent_success = true,
                          .work = provider::FastRegisterWork{.region = region,
                                                             .base = VirtualAddress{kBase},
                                                             .length = memory_.size(),
                                                             .rights = {.local_write = true, .remote_write = true},
                                                             .runs = {&run_, 1}}})
               .ok() &&
           ok;
    }
    pair_->Kick();
    for (const auto& region : regions_) {
      ok = pair_->Enqueue({.silent_success = true, .work = provider::InvalidateWork{.region = region}}).ok() && ok;
    }
    pair_->Kick();
    return ok;
  }

 private:
  void OnCompletion(provider::WorkQueue, const provider::Completion&) override {}
  void OnPeerDisconnected() override {}

  KernelRandom random_;
  provider::SoftProvider provider_{{}, random_};
  std::vector<std::byte> memory_;
  const std::span<std::byte> run_{memory_};
  std::unique_ptr<provider::DeviceAdapter> adapter_;
  std::unique_ptr<provider::DeviceProtectionDomain> domain_;
  std::unique_ptr<provider::DeviceCompletionQueue> queue_;
  std::array<std::shared_ptr<provider::DeviceFastRegion>, kChain> regions_;
  bool connected_ = false;
  std::unique_ptr<provider::DeviceQueuePair> pair_;
};

void ProviderChain(benchmark::State& state) {
  BareProvider provider(1);
  for (auto _ : state) {
    if (!provider.RegisterAndInvalidate()) {
      state.SkipWithError("refused");
      return;
    }
  }
}

}  // namespace

void AddFastRegisterRows() {
  for (const int chain : {1, kChain}) {
    auto* rows = benchmark::RegisterBenchmark(("fast/core_chain_" + std::to_string(chain)).c_str(),
                                              [chain](benchmark::State& state) { Chain(state, chain); });
    for (const int64_t pages : kPageCounts) {
      rows->Args({pages, 0})->Args({pages, 1});
    }
  }
  benchmark::RegisterBenchmark("fast/provider_chain_64", ProviderChain);
}

}  // namespace rnicd::bench
