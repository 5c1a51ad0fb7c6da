#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::metrics {

// Sorted by name, because two generations may write them in different orders.
using SortedLabels = std::vector<prometheus::ClientMetric::Label>;

// The samples of one counter or histogram.
struct CounterSamples {
  std::string help;
  prometheus::MetricType type = prometheus::MetricType::Counter;
  std::map<SortedLabels, prometheus::ClientMetric> by_labels;
};
using CountersByName = std::map<std::string, CounterSamples, std::less<>>;

SortedLabels LabelsOf(const prometheus::ClientMetric& sample);

// Adds a sample to another one of the same labels. A bucket with a bound that `from` does not have gets what is surely
// below that bound.
void AddSample(prometheus::MetricType type, const prometheus::ClientMetric& from, prometheus::ClientMetric& to);

// Reads counters and histograms as prometheus::TextSerializer writes them; families of other types are left out.
// Errors: kInvalidArgument with the number of the line, or the name of a histogram whose buckets contradict each other.
absl::StatusOr<CountersByName> ParseCounters(std::string_view text);

}  // namespace rnicd::metrics
