#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "daemon/core/observer.h"

namespace rnicd::metrics {

// How fast registrations were carried out since the start, one number for each way.
struct EngineValues {
  uint64_t direct = 0;
  uint64_t composed = 0;
  uint64_t windowed = 0;
};

// What is read off the daemon's own tables at every scrape, so that it can never drift from them.
struct GaugeValues {
  uint64_t registered_bytes = 0;
  uint64_t registered_pages = 0;
  uint64_t pinned_bytes = 0;
  uint64_t memory_regions = 0;
  uint64_t memory_objects = 0;
  uint64_t memory_bytes = 0;
  uint64_t sessions = 0;
  uint64_t connections = 0;
  uint64_t device_regions = 0;
  EngineValues fast_registrations;
};

// Every metric of the daemon: names, units, labels and help stand in metrics.cc and nowhere else.
// Threads: safe. The hot path touches counters that were looked up before.
class Metrics final : public core::Observer {
 public:
  // `methods`: the names of all RPC methods, in memory that outlives this.
  Metrics(std::span<const std::string_view> methods, const std::string& version);
  ~Metrics() override;

  // The page of a scrape. `gauges` are its current values.
  std::string Render(const GaugeValues& gauges) const;

  void OnRpc(std::string_view method, absl::StatusCode code, std::optional<std::chrono::nanoseconds> duration) override;
  void OnConnectionRefused(std::string_view reason) override;
  void OnSessionOpened(SessionId id, const core::Caller& caller) override;
  void OnSessionEnded(SessionId id, const core::Caller& caller, core::EndCause cause,
                      const core::Reclaimed& reclaimed) override;
  void OnRegistered(const core::RegistrationReport& report) override;
  void OnDeregistered(const absl::Status& status) override;
  void OnTokensIssued(uint64_t local, uint64_t remote) override;
  void OnTokensRevoked(uint64_t pairs, std::string_view cause) override;

 private:
  using CounterFamily = prometheus::Family<prometheus::Counter>;
  static constexpr size_t kStatusCodes = 17;
  struct MethodCells {
    std::array<std::atomic<prometheus::Counter*>, kStatusCodes> by_code{};
    prometheus::Histogram* duration = nullptr;
  };

  void DeclareMethods(std::span<const std::string_view> methods);
  void DeclareFailures();
  void DeclareEnds();

  const std::shared_ptr<prometheus::Registry> registry_;

  CounterFamily& rpcs_;
  CounterFamily& refused_;
  CounterFamily& tokens_revoked_;
  std::unordered_map<std::string_view, std::unique_ptr<MethodCells>> methods_;

  prometheus::Counter& registrations_ok_;
  prometheus::Counter& registrations_failed_;
  std::unordered_map<uint32_t, prometheus::Counter*> failures_by_reason_;
  prometheus::Histogram& registration_duration_;
  prometheus::Counter& deregistrations_ok_;
  prometheus::Counter& deregistrations_failed_;
  prometheus::Counter& local_tokens_issued_;
  prometheus::Counter& remote_tokens_issued_;
  prometheus::Counter& sessions_opened_;

  struct EndCells {
    prometheus::Counter* sessions = nullptr;
    prometheus::Counter* bytes = nullptr;
    prometheus::Counter* regions = nullptr;
  };
  std::array<EndCells, std::size(core::kAllEndCauses)> ends_;
  prometheus::Counter& reclaim_failures_;
};

}  // namespace rnicd::metrics
