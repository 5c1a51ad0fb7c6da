#include "daemon/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/status/status.h"
#include "base/status.h"

namespace rnicd::metrics {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using prometheus::Registry;

constexpr double kNanosecondsPerSecond = 1e9;

// From a soft registration of a page to a card that pins a terabyte.
const Histogram::BucketBoundaries& DurationBuckets() {
  static const Histogram::BucketBoundaries kBuckets = {5e-6,   1e-5,   2.5e-5, 5e-5, 1e-4,   2.5e-4, 5e-4,
                                                       1e-3,   2.5e-3, 5e-3,   1e-2, 2.5e-2, 5e-2,   1e-1,
                                                       2.5e-1, 5e-1,   1,      2.5,  5,      10,     30};
  return kBuckets;
}

Family<Counter>& CounterFamilyOf(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

Family<Histogram>& HistogramFamilyOf(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

double Seconds(std::chrono::nanoseconds duration) {
  return static_cast<double>(duration.count()) / kNanosecondsPerSecond;
}

prometheus::MetricFamily Gauge(const char* name, const char* help, uint64_t value) {
  prometheus::ClientMetric metric;
  metric.gauge.value = static_cast<double>(value);
  return prometheus::MetricFamily{name, help, prometheus::MetricType::Gauge, {metric}};
}

// A counter that the device keeps.
prometheus::MetricFamily FastRegistrations(const EngineValues& values) {
  prometheus::MetricFamily family{"rnicd_fast_registrations_total",
                                  "Fast registrations that a card carried out, by engine: direct (memory that lies "
                                  "together), compose (mapped together first), window (memory windows of the card).",
                                  prometheus::MetricType::Counter,
                                  {}};
  for (const auto& [engine, value] : {std::pair("direct", values.direct), std::pair("compose", values.composed),
                                      std::pair("window", values.windowed)}) {
    prometheus::ClientMetric metric;
    metric.label = {{"engine", engine}};
    metric.counter.value = static_cast<double>(value);
    family.metric.push_back(metric);
  }
  return family;
}

std::vector<prometheus::MetricFamily> Gauges(const GaugeValues& values) {
  return {
      Gauge("rnicd_registered_bytes", "Bytes of the pages that memory regions hold registered or mappings hold mapped.",
            values.registered_bytes),
      Gauge("rnicd_registered_pages", "Pages of 4 KiB that memory regions hold registered or mappings hold mapped.",
            values.registered_pages),
      Gauge("rnicd_pinned_bytes", "The same bytes, each page counted once for each tenant.", values.pinned_bytes),
      Gauge("rnicd_memory_regions", "Memory regions, registered or not.", values.memory_regions),
      Gauge("rnicd_device_regions", "Registrations that are alive in the devices.", values.device_regions),
      Gauge("rnicd_memory_objects", "Memory objects, attached or not.", values.memory_objects),
      Gauge("rnicd_memory_bytes", "Bytes of memory objects.", values.memory_bytes),
      Gauge("rnicd_sessions", "Sessions, those that are ending included.", values.sessions),
      Gauge("rnicd_connections", "Connections on the workload and admin sockets.", values.connections),
      FastRegistrations(values.fast_registrations),
  };
}

}  // namespace

Metrics::Metrics(std::span<const std::string_view> methods, const std::string& version)
    : registry_(std::make_shared<Registry>()),
      rpcs_(CounterFamilyOf(*registry_, "rnicd_rpcs_total", "Calls through the gate, by method and gRPC code.")),
      refused_(CounterFamilyOf(*registry_, "rnicd_connections_refused_total",
                               "Connections that were turned away, by reason.")),
      tokens_revoked_(CounterFamilyOf(*registry_, "rnicd_tokens_revoked_total",
                                      "Pairs of local and remote token that died, by cause.")),
      registrations_ok_(CounterFamilyOf(*registry_, "rnicd_registrations_total", "Registrations, by result.")
                            .Add({{"result", "ok"}})),
      registrations_failed_(CounterFamilyOf(*registry_, "rnicd_registrations_total", "Registrations, by result.")
                                .Add({{"result", "error"}})),
      registration_duration_(HistogramFamilyOf(*registry_, "rnicd_registration_duration_seconds",
                                               "Time from the admission of a registration to the device's answer.")
                                 .Add({}, DurationBuckets())),
      deregistrations_ok_(CounterFamilyOf(*registry_, "rnicd_deregistrations_total", "Deregistrations, by result.")
                              .Add({{"result", "ok"}})),
      deregistrations_failed_(CounterFamilyOf(*registry_, "rnicd_deregistrations_total", "Deregistrations, by result.")
                                  .Add({{"result", "error"}})),
      local_tokens_issued_(
          CounterFamilyOf(*registry_, "rnicd_tokens_issued_total", "Tokens handed to clients, by kind.")
              .Add({{"kind", "local"}})),
      remote_tokens_issued_(
          CounterFamilyOf(*registry_, "rnicd_tokens_issued_total", "Tokens handed to clients, by kind.")
              .Add({{"kind", "remote"}})),
      sessions_opened_(CounterFamilyOf(*registry_, "rnicd_sessions_opened_total", "Sessions opened.").Add({})),
      reclaim_failures_(CounterFamilyOf(*registry_, "rnicd_reclaim_failures_total",
                                        "Objects that could not be taken back when their session ended.")
                            .Add({})) {
  DeclareMethods(methods);
  DeclareFailures();
  DeclareEnds();
  for (const std::string_view reason : core::kRefusals) {
    refused_.Add({{"reason", std::string(reason)}});
  }
  tokens_revoked_.Add({{"cause", "deregister"}});
  tokens_revoked_.Add({{"cause", "close"}});
  prometheus::BuildGauge()
      .Name("rnicd_build_info")
      .Help("Always 1; the label tells the version.")
      .Register(*registry_)
      .Add({{"version", version}})
      .Set(1);
}

Metrics::~Metrics() = default;

void Metrics::DeclareMethods(std::span<const std::string_view> methods) {
  Family<Histogram>& durations = HistogramFamilyOf(*registry_, "rnicd_rpc_duration_seconds",
                                                   "Time from a call's admission to its answer, by method.");
  for (const std::string_view method : methods) {
    auto cells = std::make_unique<MethodCells>();
    cells->duration = &durations.Add({{"method", std::string(method)}}, DurationBuckets());
    methods_.emplace(method, std::move(cells));
  }
}

void Metrics::DeclareFailures() {
  Family<Counter>& failures = CounterFamilyOf(*registry_, "rnicd_registration_failures_total",
                                              "Registrations that were refused or failed, by reason.");
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    failures_by_reason_.emplace(static_cast<uint32_t>(row.reason), &failures.Add({{"reason", Lower(row.name)}}));
  }
}

void Metrics::DeclareEnds() {
  Family<Counter>& sessions = CounterFamilyOf(*registry_, "rnicd_sessions_ended_total", "Sessions ended, by cause.");
  Family<Counter>& bytes =
      CounterFamilyOf(*registry_, "rnicd_reclaimed_bytes_total",
                      "Registered bytes that a session still held when it ended, by cause of the end.");
  Family<Counter>& regions =
      CounterFamilyOf(*registry_, "rnicd_reclaimed_regions_total",
                      "Memory regions that a session still held when it ended, by cause of the end.");
  for (const core::EndCause cause : core::kAllEndCauses) {
    const prometheus::Labels labels = {{"cause", std::string(core::EndCauseName(cause))}};
    ends_[static_cast<size_t>(cause)] = {&sessions.Add(labels), &bytes.Add(labels), &regions.Add(labels)};
    tokens_revoked_.Add(labels);
  }
}

std::string Metrics::Render(const GaugeValues& gauges) const {
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  for (prometheus::MetricFamily& family : Gauges(gauges)) {
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

void Metrics::OnRpc(std::string_view method, absl::StatusCode code, std::optional<std::chrono::nanoseconds> duration) {
  const auto cells = methods_.find(method);
  const auto code_index = static_cast<size_t>(code);
  if (cells == methods_.end() || code_index >= kStatusCodes) {
    return;
  }
  std::atomic<Counter*>& cell = cells->second->by_code[code_index];
  Counter* counter = cell.load();
  if (counter == nullptr) {
    // Add answers the same counter to everyone who asks for the same labels.
    counter = &rpcs_.Add({{"method", std::string(method)}, {"code", absl::StatusCodeToString(code)}});
    cell.store(counter);
  }
  counter->Increment();
  if (duration.has_value()) {
    cells->second->duration->Observe(Seconds(*duration));
  }
}

void Metrics::OnConnectionRefused(std::string_view reason) {
  refused_.Add({{"reason", std::string(reason)}}).Increment();
}

void Metrics::OnSessionOpened(SessionId /*id*/, const core::Caller& /*caller*/) { sessions_opened_.Increment(); }

void Metrics::OnSessionEnded(SessionId /*id*/, const core::Caller& /*caller*/, core::EndCause cause,
                             const core::Reclaimed& reclaimed) {
  const EndCells& cells = ends_[static_cast<size_t>(cause)];
  cells.sessions->Increment();
  cells.bytes->Increment(static_cast<double>(reclaimed.pinned_bytes));
  cells.regions->Increment(static_cast<double>(reclaimed.regions));
  reclaim_failures_.Increment(static_cast<double>(reclaimed.failures));
}

void Metrics::OnRegistered(const core::RegistrationReport& report) {
  if (report.reached_device) {
    registration_duration_.Observe(Seconds(report.duration));
  }
  if (report.status.ok()) {
    registrations_ok_.Increment();
    return;
  }
  registrations_failed_.Increment();
  failures_by_reason_.at(static_cast<uint32_t>(RowOf(ErrorInfoOf(report.status).reason).reason))->Increment();
}

void Metrics::OnDeregistered(const absl::Status& status) {
  (status.ok() ? deregistrations_ok_ : deregistrations_failed_).Increment();
}

void Metrics::OnTokensIssued(uint64_t local, uint64_t remote) {
  local_tokens_issued_.Increment(static_cast<double>(local));
  remote_tokens_issued_.Increment(static_cast<double>(remote));
}

void Metrics::OnTokensRevoked(uint64_t pairs, std::string_view cause) {
  tokens_revoked_.Add({{"cause", std::string(cause)}}).Increment(static_cast<double>(pairs));
}

}  // namespace rnicd::metrics
