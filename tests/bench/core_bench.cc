#include <benchmark/benchmark.h>

#include <future>
#include <memory>
#include <vector>

#include "base/os.h"
#include "daemon/core/session_registry.h"
#include "provider/soft/soft_provider.h"
#include "tests/bench/bench.h"

namespace rnicd::bench {
namespace {

// A core with one session and one sealed memory object, and no process, socket or gRPC around it. Nothing pends: the
// row is to show what the operation itself costs.
class InProcess {
 public:
  explicit InProcess(uint64_t bytes)
      : node_{.os = LinuxOs(),
              .clock = clock_,
              .random = random_,
              .provider = provider_,
              .observer = observer_,
              .workers = workers_,
              .reapers = workers_,
              .tickets = tickets_,
              .limits = {.pending_threshold_bytes = UINT64_MAX},
              .ledger = std::make_shared<core::Ledger>(core::Limits{}, nullptr),
              .started = clock_.Now()},
        registry_(node_) {
    session_ = *registry_.Open(core::Caller{}, "bench");
    pd_ = *session_->CreatePd(*session_->OpenAdapter("soft0", NdkVersion{1, 2}));
    memory_ = AllocateSealed(bytes);
  }
  ~InProcess() {
    registry_.End(session_, core::EndCause::kClosed, nullptr);
    registry_.WaitUntilEmpty(clock_.Now() + std::chrono::minutes(1));
  }

  MemoryRegionId CreateMr() { return *session_->CreateMr(pd_, false); }

  bool Register(MemoryRegionId region, uint64_t offset, uint64_t bytes) {
    const core::MdlEntry entry{
        .memory = memory_, .offset = offset, .count = bytes, .address = VirtualAddress{kBase + offset}};
    return session_
        ->RegisterMr({.region = region, .chain = std::span(&entry, 1), .length = bytes, .flags = kMrFlagRemoteWrite},
                     {}, nullptr)
        .ok();
  }
  bool Deregister(MemoryRegionId region) { return session_->DeregisterMr(region, {}, nullptr).ok(); }

 private:
  MemoryObjectId AllocateSealed(uint64_t bytes) {
    std::promise<MemoryObjectId> allocated;
    const absl::Status begun = session_->AllocateMemory(
        {.size = bytes},
        [&](const absl::StatusOr<core::MemoryTicket>& ticket) { allocated.set_value(ticket->memory); });
    const MemoryObjectId id = begun.ok() ? allocated.get_future().get() : MemoryObjectId{};
    return (*session_->FindMemory(id))->Seal().ok() ? id : MemoryObjectId{};
  }

  SteadyClock clock_;
  KernelRandom random_;
  core::Observer observer_;
  provider::SoftProvider provider_{{}, random_};
  core::WorkerPool workers_{1};
  core::TicketTable tickets_{random_, clock_, std::chrono::minutes(1)};
  core::Node node_;
  core::SessionRegistry registry_;
  std::shared_ptr<core::Session> session_;
  ProtectionDomainId pd_;
  MemoryObjectId memory_;
};

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
