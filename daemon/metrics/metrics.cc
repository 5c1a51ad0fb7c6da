#include "daemon/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "base/status.h"
#include "daemon/metrics/catalogue.h"
#include "daemon/metrics/names.h"

namespace rnicd::metrics {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using prometheus::Registry;

// From a soft registration of a page to a card that pins a terabyte.
const Histogram::BucketBoundaries& DurationBuckets() {
  static const Histogram::BucketBoundaries kBuckets = {5e-6,   1e-5,   2.5e-5, 5e-5, 1e-4,   2.5e-4, 5e-4,
                                                       1e-3,   2.5e-3, 5e-3,   1e-2, 2.5e-2, 5e-2,   1e-1,
                                                       2.5e-1, 5e-1,   1,      2.5,  5,      10,     30};
  return kBuckets;
}

// A class of sizes up to `most` bytes, without those of earlier classes.
struct SizeClass {
  uint64_t most;
  const char* name;
};
constexpr SizeClass kSizeClassRows[] = {{uint64_t{64} << 10, "up_to_64KiB"},
                                        {uint64_t{1} << 20, "up_to_1MiB"},
                                        {uint64_t{16} << 20, "up_to_16MiB"},
                                        {uint64_t{256} << 20, "up_to_256MiB"},
                                        {UINT64_MAX, "above_256MiB"}};

size_t SizeClassOf(uint64_t bytes) {
  size_t index = 0;
  while (bytes > kSizeClassRows[index].most) {
    ++index;
  }
  return index;
}

constexpr const char* kOperationNames[] = {"receive",    "send", "fast_register", "bind",
                                           "invalidate", "read", "write",         "receive_and_invalidate"};

size_t IndexOf(OperationType operation) {
  switch (operation) {
    case OperationType::kReceive:
      return 0;
    case OperationType::kSend:
      return 1;
    case OperationType::kFastRegister:
      return 2;
    case OperationType::kBind:
      return 3;
    case OperationType::kInvalidate:
      return 4;
    case OperationType::kRead:
      return 5;
    case OperationType::kWrite:
      return 6;
    case OperationType::kReceiveAndInvalidate:
      return 7;
  }
  return 0;
}

constexpr const char* kResultNames[] = {"success", "cancelled", "error"};

size_t IndexOf(NtStatus status) {
  if (status == NtStatus::kSuccess) {
    return 0;
  }
  return status == NtStatus::kCancelled ? 1 : 2;
}

Family<Counter>& CountersOf(Registry& registry, Metric metric) {
  return prometheus::BuildCounter().Name(RowOf(metric).name).Help(RowOf(metric).help).Register(registry);
}

Family<Histogram>& HistogramsOf(Registry& registry, Metric metric) {
  return prometheus::BuildHistogram().Name(RowOf(metric).name).Help(RowOf(metric).help).Register(registry);
}

double Seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Metrics::Metrics(std::span<const std::string_view> methods, const std::string& version)
    : registry_(std::make_shared<Registry>()),
      rpcs_(CountersOf(*registry_, Metric::kRpcs)),
      refused_(CountersOf(*registry_, Metric::kConnectionsRefused)),
      adapter_events_(CountersOf(*registry_, Metric::kAdapterEvents)),
      fast_registrations_failed_(
          CountersOf(*registry_, Metric::kFastRegistrations).Add({{"engine", "none"}, {"result", "error"}})),
      local_tokens_issued_(CountersOf(*registry_, Metric::kTokensIssued).Add({{"kind", "local"}})),
      remote_tokens_issued_(CountersOf(*registry_, Metric::kTokensIssued).Add({{"kind", "remote"}})),
      sessions_opened_(CountersOf(*registry_, Metric::kSessionsOpened).Add({})),
      reclaim_failures_(CountersOf(*registry_, Metric::kReclaimFailures).Add({})) {
  DeclareMethods(methods);
  DeclareRegistrations();
  DeclareEnds();
  DeclareCompletions();
  for (const std::string_view reason : core::kRefusals) {
    refused_.Add({{"reason", std::string(reason)}});
  }
  const MetricRow& build = RowOf(Metric::kBuildInfo);
  prometheus::BuildGauge().Name(build.name).Help(build.help).Register(*registry_).Add({{"version", version}}).Set(1);
}

Metrics::~Metrics() = default;

void Metrics::DeclareMethods(std::span<const std::string_view> methods) {
  HistogramFamily& durations = HistogramsOf(*registry_, Metric::kRpcDuration);
  for (const std::string_view method : methods) {
    auto cells = std::make_unique<MethodCells>();
    cells->duration = &durations.Add({{"method", std::string(method)}}, DurationBuckets());
    methods_.emplace(method, std::move(cells));
  }
}

void Metrics::DeclareRegistrations() {
  CounterFamily& failures = CountersOf(*registry_, Metric::kRegistrationFailures);
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    failures_by_reason_.emplace(static_cast<uint32_t>(row.reason), &failures.Add({{"reason", Lower(row.name)}}));
  }
  HistogramFamily& durations = HistogramsOf(*registry_, Metric::kRegistrationDuration);
  static_assert(std::size(kSizeClassRows) == kSizeClasses);
  for (size_t index = 0; index < kSizeClasses; ++index) {
    registration_durations_[index] = &durations.Add({{"size_class", kSizeClassRows[index].name}}, DurationBuckets());
  }
}

void Metrics::DeclareEnds() {
  CounterFamily& revoked = CountersOf(*registry_, Metric::kTokensRevoked);
  const auto declare_revoked = [&](std::string_view cause) {
    tokens_revoked_.emplace(cause, &revoked.Add({{"cause", std::string(cause)}}));
  };
  declare_revoked("deregister");
  declare_revoked("close");
  declare_revoked(core::kRemovalCause);
  CounterFamily& sessions = CountersOf(*registry_, Metric::kSessionsEnded);
  CounterFamily& bytes = CountersOf(*registry_, Metric::kReclaimedBytes);
  CounterFamily& regions = CountersOf(*registry_, Metric::kReclaimedRegions);
  for (const core::EndCause cause : core::kAllEndCauses) {
    const prometheus::Labels labels = {{"cause", std::string(core::EndCauseName(cause))}};
    ends_[static_cast<size_t>(cause)] = {&sessions.Add(labels), &bytes.Add(labels), &regions.Add(labels)};
    declare_revoked(core::EndCauseName(cause));
  }
}

void Metrics::DeclareCompletions() {
  CounterFamily& completions = CountersOf(*registry_, Metric::kCompletions);
  static_assert(std::size(kOperationNames) == kOperations && std::size(kResultNames) == kResults);
  for (size_t operation = 0; operation < kOperations; ++operation) {
    for (size_t result = 0; result < kResults; ++result) {
      completions_[operation][result] =
          &completions.Add({{"operation", kOperationNames[operation]}, {"result", kResultNames[result]}});
    }
  }
}

std::vector<prometheus::MetricFamily> Metrics::Collect(std::vector<prometheus::MetricFamily> state) const {
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  for (prometheus::MetricFamily& family : state) {
    // Successful fast registrations are counted by the devices, failed ones here.
    const auto same = [&](const prometheus::MetricFamily& other) { return other.name == family.name; };
    const auto known = std::find_if(families.begin(), families.end(), same);
    if (known == families.end()) {
      families.push_back(std::move(family));
    } else {
      std::move(family.metric.begin(), family.metric.end(), std::back_inserter(known->metric));
    }
  }
  return families;
}

std::string Metrics::Render(std::vector<prometheus::MetricFamily> state, const InheritedCounters* inherited) const {
  std::vector<prometheus::MetricFamily> families = Collect(std::move(state));
  if (inherited != nullptr) {
    inherited->AddTo(families);
  }
  return prometheus::TextSerializer().Serialize(families);
}

void Metrics::Observe(const core::Observation& observation) {
  observation.Visit([this](const auto& event) { Count(event); });
}

void Metrics::Count(const core::RpcEnded& rpc) {
  const auto cells = methods_.find(rpc.method);
  const auto code_index = static_cast<size_t>(rpc.code);
  if (cells == methods_.end() || code_index >= kStatusCodes) {
    return;
  }
  std::atomic<Counter*>& cell = cells->second->by_code[code_index];
  Counter* counter = cell.load();
  if (counter == nullptr) {
    // Add returns the same counter for the same labels.
    counter = &rpcs_.Add({{"method", std::string(rpc.method)}, {"code", absl::StatusCodeToString(rpc.code)}});
    cell.store(counter);
  }
  counter->Increment();
  if (rpc.duration.has_value()) {
    cells->second->duration->Observe(Seconds(*rpc.duration));
  }
}

void Metrics::Count(const core::ConnectionRefused& refused) {
  refused_.Add({{"reason", std::string(refused.reason)}}).Increment();
}

void Metrics::Count(const core::SessionOpened& /*opened*/) { sessions_opened_.Increment(); }

void Metrics::Count(const core::SessionEnded& ended) {
  const EndCells& cells = ends_[static_cast<size_t>(ended.cause)];
  cells.sessions->Increment();
  cells.bytes->Increment(static_cast<double>(ended.reclaimed.pinned_bytes));
  cells.regions->Increment(static_cast<double>(ended.reclaimed.regions));
  reclaim_failures_.Increment(static_cast<double>(ended.reclaimed.failures));
}

void Metrics::Count(const core::RegistrationEnded& registration) {
  if (registration.reached_device) {
    registration_durations_[SizeClassOf(registration.bytes)]->Observe(Seconds(registration.duration));
  }
  if (!registration.status.ok()) {
    failures_by_reason_.at(static_cast<uint32_t>(RowOf(ErrorInfoOf(registration.status).reason).reason))->Increment();
  }
}

void Metrics::Count(const core::FastRegisterRefused& /*refused*/) { fast_registrations_failed_.Increment(); }

void Metrics::Count(const core::TokensIssued& issued) {
  local_tokens_issued_.Increment(static_cast<double>(issued.local));
  remote_tokens_issued_.Increment(static_cast<double>(issued.remote));
}

void Metrics::Count(const core::TokensRevoked& revoked) {
  if (const auto counter = tokens_revoked_.find(revoked.cause); counter != tokens_revoked_.end()) {
    counter->second->Increment(static_cast<double>(revoked.pairs));
  }
}

void Metrics::Count(const core::WorkRequestCompleted& completed) {
  completions_[IndexOf(completed.operation)][IndexOf(completed.status)]->Increment();
  if (completed.operation == OperationType::kFastRegister && completed.status != NtStatus::kSuccess) {
    fast_registrations_failed_.Increment();
  }
}

void Metrics::OnAdapterEvent(const provider::AdapterEvent& event) {
  adapter_events_.Add({{"adapter", event.adapter}, {"event", std::string(provider::AdapterEventName(event.kind))}})
      .Increment();
}

}  // namespace rnicd::metrics
