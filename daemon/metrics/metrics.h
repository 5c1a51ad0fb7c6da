#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/core/tenant/observation.h"
#include "daemon/metrics/generations/inherited_counters.h"
#include "provider/api/adapter_event.h"

namespace rnicd::metrics {

// Counts and measures events. Values read from tables at a scrape are in state.h; the names of the metrics in
// catalogue.inc.
// Threads: safe. The hot path touches counters that were looked up before.
class Metrics final : public core::Observer {
 public:
  // `methods`: the names of all RPC methods, in memory that outlives this.
  Metrics(std::span<const std::string_view> methods, const std::string& version);
  ~Metrics() override;

  // All that was counted, and `state`: the result of ReadState.
  std::vector<prometheus::MetricFamily> Collect(std::vector<prometheus::MetricFamily> state) const;
  // The page of a scrape; `inherited` may be null.
  std::string Render(std::vector<prometheus::MetricFamily> state, const InheritedCounters* inherited = nullptr) const;

  void Observe(const core::Observation& observation) override;
  bool HeedsSuccesses() const override { return false; }
  // Counts an asynchronous event of an adapter, which is not kLeftOut.
  void OnAdapterEvent(const provider::AdapterEvent& event);

 private:
  using Counter = prometheus::Counter;
  using CounterFamily = prometheus::Family<Counter>;
  using HistogramFamily = prometheus::Family<prometheus::Histogram>;
  static constexpr size_t kStatusCodes = 17;
  static constexpr size_t kSizeClasses = 5;
  static constexpr size_t kOperations = 8;
  static constexpr size_t kResults = 3;
  struct MethodCells {
    std::array<std::atomic<Counter*>, kStatusCodes> by_code{};
    prometheus::Histogram* duration = nullptr;
  };

  // One for each event of core, or the code does not compile: no overload accepts any type.
  void Count(const core::RpcEnded& rpc);
  void Count(const core::ConnectionRefused& refused);
  void Count(const core::SessionOpened& opened);
  void Count(const core::SessionEnded& ended);
  void Count(const core::RegistrationEnded& registration);
  void Count(const core::FastRegisterRefused& refused);
  void Count(const core::WorkRequestCompleted& completed);
  void Count(const core::TokensIssued& issued);
  void Count(const core::TokensRevoked& revoked);
  // Not counted here: the tallies of tenants count deregistrations and refusals.
  void Count(const core::DeregistrationEnded& /*deregistration*/) {}
  void Count(const core::Decision& /*decision*/) {}

  void DeclareMethods(std::span<const std::string_view> methods);
  void DeclareRegistrations();
  void DeclareEnds();
  void DeclareCompletions();

  const std::shared_ptr<prometheus::Registry> registry_;

  CounterFamily& rpcs_;
  CounterFamily& refused_;
  CounterFamily& adapter_events_;
  std::unordered_map<std::string_view, std::unique_ptr<MethodCells>> methods_;

  std::unordered_map<uint32_t, Counter*> failures_by_reason_;
  // The keys are in static memory.
  std::unordered_map<std::string_view, Counter*> tokens_revoked_;
  std::array<prometheus::Histogram*, kSizeClasses> registration_durations_{};
  Counter& fast_registrations_failed_;
  Counter& local_tokens_issued_;
  Counter& remote_tokens_issued_;
  Counter& sessions_opened_;
  std::array<std::array<Counter*, kResults>, kOperations> completions_{};

  struct EndCells {
    Counter* sessions = nullptr;
    Counter* bytes = nullptr;
    Counter* regions = nullptr;
  };
  std::array<EndCells, std::size(core::kAllEndCauses)> ends_;
  Counter& reclaim_failures_;
};

}  // namespace rnicd::metrics
