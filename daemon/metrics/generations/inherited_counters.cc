#include "daemon/metrics/generations/inherited_counters.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "daemon/core/tenant/tenant_tally.h"
#include "daemon/metrics/catalogue.h"

namespace rnicd::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Whether the catalogue has another type for this name.
bool Contradicts(const std::string& name, MetricType type) {
  const Kind kind = type == MetricType::Histogram ? Kind::histogram : Kind::counter;
  return std::ranges::any_of(AllMetrics(), [&](const MetricRow& row) { return row.name == name && row.kind != kind; });
}

// A series that the older generation has no more, or began anew, as that of a card that went, stays.
void Raise(CounterSamples newer, CounterSamples& known) {
  known.help = std::move(newer.help);
  known.type = newer.type;
  for (auto& [labels, sample] : newer.by_labels) {
    ClientMetric& last = known.by_labels[labels];
    if (sample.counter.value >= last.counter.value && sample.histogram.sample_count >= last.histogram.sample_count) {
      last = std::move(sample);
    }
  }
}

void AddOne(const ClientMetric& sample, CounterSamples& known) {
  const auto [place, added] = known.by_labels.try_emplace(LabelsOf(sample), sample);
  if (!added) {
    AddSample(known.type, sample, place->second);
  }
}

void AddAll(CounterSamples newer, CounterSamples& known) {
  known.help = std::move(newer.help);
  known.type = newer.type;
  for (const auto& [labels, sample] : newer.by_labels) {
    AddOne(sample, known);
  }
}

void AddFamily(const CounterSamples& family, MetricFamily& page) {
  std::map<SortedLabels, ClientMetric*> own;
  for (ClientMetric& sample : page.metric) {
    own.emplace(LabelsOf(sample), &sample);
  }
  std::vector<ClientMetric> others;
  for (const auto& [labels, sample] : family.by_labels) {
    if (const auto found = own.find(labels); found != own.end()) {
      AddSample(family.type, sample, *found->second);
    } else {
      others.push_back(sample);
    }
  }
  page.metric.insert(page.metric.end(), others.begin(), others.end());
}

}  // namespace

InheritedCounters::InheritedCounters(size_t most_tenants, std::function<void(const absl::Status&)> on_refused)
    : most_tenants_(most_tenants), on_refused_(std::move(on_refused)) {}

void InheritedCounters::Set(std::string_view text) { Read(text, Raise, &InheritedCounters::older_); }

void InheritedCounters::Keep(std::string_view text) { Read(text, AddAll, &InheritedCounters::newer_); }

void InheritedCounters::Read(std::string_view text, Join join, CountersByName InheritedCounters::* known) {
  absl::Status status;
  bool first = false;
  {
    MutexLock lock(mutex_);
    status = Take(text, join, this->*known);
    first = !status.ok() && !refused_;
    refused_ = !status.ok();
  }
  if (first) {
    on_refused_(status);
  }
}

absl::Status InheritedCounters::Take(std::string_view text, Join join, CountersByName& known) {
  if (text.size() > kTextBytesMost) {
    return absl::ResourceExhaustedError("too long");
  }
  RNICD_ASSIGN_OR_RETURN(CountersByName newer, ParseCounters(text));
  absl::Status status;
  for (auto& [name, family] : newer) {
    if (Contradicts(name, family.type)) {
      status = absl::InvalidArgumentError(name + " is of another type here");
      continue;
    }
    BoundTenants(family);
    join(std::move(family), known[name]);
  }
  return status;
}

void InheritedCounters::BoundTenants(CounterSamples& family) {
  CounterSamples bounded = {.help = family.help, .type = family.type, .by_labels = {}};
  for (auto& [labels, sample] : family.by_labels) {
    const auto tenant = std::ranges::find(sample.label, "tenant", &ClientMetric::Label::name);
    if (tenant != sample.label.end() && tenant->value != core::kOtherTenants && !tenants_.contains(tenant->value)) {
      if (tenants_.size() < most_tenants_) {
        tenants_.insert(tenant->value);
      } else {
        tenant->value = core::kOtherTenants;
      }
    }
    AddOne(sample, bounded);
  }
  family = std::move(bounded);
}

void InheritedCounters::AddTo(std::vector<MetricFamily>& page) const {
  MutexLock lock(mutex_);
  for (const CountersByName* const families : {&older_, &newer_}) {
    for (const auto& [name, family] : *families) {
      auto own = std::ranges::find(page, name, &MetricFamily::name);
      if (own == page.end()) {
        own = page.insert(own, {name, family.help, family.type, {}});
      }
      if (own->type == family.type) {
        AddFamily(family, *own);
      }
    }
  }
}

}  // namespace rnicd::metrics
