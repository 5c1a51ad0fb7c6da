// The cost of counting an operation, and of a scrape.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/core/tenant/tenant_tally.h"
#include "daemon/metrics/metrics.h"
#include "daemon/metrics/state.h"
#include "tests/bench/bench.h"
#include "tests/bench/in_process.h"

namespace rnicd::bench {
namespace {

constexpr std::string_view kMethods[] = {"MemoryService.RegisterMr"};
// Number of tenants of a crowded node.
constexpr uint64_t kTenants = 1000;

// Every counter update of a successful registration.
void CountRegistration(benchmark::State& state) {
  metrics::Metrics metrics(kMethods, "bench");
  core::TenantTally tally("tenant");
  for (auto _ : state) {
    tally.CountRegistration(true);
    metrics.Report(
        core::RegistrationEnded{.bytes = 4096, .reached_device = true, .duration = std::chrono::microseconds(7)});
    metrics.Report(core::TokensIssued{.local = 1, .remote = 1});
  }
}

void CountCall(benchmark::State& state) {
  metrics::Metrics metrics(kMethods, "bench");
  for (auto _ : state) {
    metrics.Report(core::RpcEnded{
        .method = kMethods[0], .code = absl::StatusCode::kOk, .duration = std::chrono::microseconds(150)});
  }
}

void CountCompletion(benchmark::State& state) {
  metrics::Metrics metrics(kMethods, "bench");
  for (auto _ : state) {
    metrics.Report(core::WorkRequestCompleted{.operation = OperationType::kWrite, .status = NtStatus::kSuccess});
  }
}

// A node with kTenants tenants, each with limits, a session and a registered region.
class Crowd {
 public:
  explicit Crowd(size_t most_named) : core_(kMiB, most_named, Limits()) {
    for (uint64_t number = 1; number <= kTenants; ++number) {
      sessions_.push_back(core_.OpenSession(static_cast<uid_t>(number)));
      core_.RegisterOnePage(*sessions_.back());
    }
  }
  ~Crowd() {
    for (const std::shared_ptr<core::Session>& session : sessions_) {
      core_.registry().End(session, core::EndCause::kClosed, nullptr);
    }
  }

  metrics::Sources Sources() {
    return {.node = core_.node(),
            .registry = core_.registry(),
            .connections = [] { return uint64_t{0}; },
            .adapters = [] { return std::vector<metrics::AdapterReading>(); },
            .device_regions = [] { return uint64_t{0}; },
            .audit = [] { return metrics::AuditReading(); },
            .log_lines_lost = [] { return uint64_t{0}; },
            .parts_not_serving = [] { return size_t{0}; },
            .process_started = 0};
  }

 private:
  static core::Limits Limits() {
    core::Limits limits;
    for (const core::Resource resource : {core::Resource::kPinnedBytes, core::Resource::kMemoryBytes,
                                          core::Resource::kSessions, core::Resource::kRegions}) {
      limits[resource] = 1 << 20;
    }
    return limits;
  }

  InProcess core_;
  std::vector<std::shared_ptr<core::Session>> sessions_;
};

void Scrape(benchmark::State& state) {
  Crowd crowd(static_cast<size_t>(state.range(0)));
  const metrics::Metrics metrics(kMethods, "bench");
  const metrics::Sources sources = crowd.Sources();
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = metrics.Render(metrics::ReadState(sources)).size();
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}

}  // namespace

void AddMetricsRows() {
  benchmark::RegisterBenchmark("metrics/registration", CountRegistration);
  benchmark::RegisterBenchmark("metrics/call", CountCall);
  benchmark::RegisterBenchmark("metrics/completion", CountCompletion);
  benchmark::RegisterBenchmark("metrics/scrape", Scrape)
      ->Arg(core::kNamedTenants)
      ->Arg(kTenants)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace rnicd::bench
