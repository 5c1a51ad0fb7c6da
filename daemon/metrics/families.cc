#include "daemon/metrics/families.h"

#include <string>

namespace rnicd::metrics {

prometheus::MetricFamily& Families::FamilyOf(Metric metric) {
  size_t& place = places_[static_cast<size_t>(metric)];
  if (place == 0) {
    const MetricRow& row = RowOf(metric);
    const auto type = row.kind == Kind::counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    families_.push_back({row.name, row.help, type, {}});
    place = families_.size();
  }
  return families_[place - 1];
}

bool Families::Empty(Metric metric) const {
  const size_t place = places_[static_cast<size_t>(metric)];
  return place == 0 || families_[place - 1].metric.empty();
}

void Families::Add(Metric metric, std::initializer_list<std::string_view> labels, double value) {
  prometheus::MetricFamily& family = FamilyOf(metric);
  prometheus::ClientMetric& sample = family.metric.emplace_back();
  sample.label.reserve(labels.size());
  std::string_view names = RowOf(metric).labels;
  for (const std::string_view label : labels) {
    const size_t comma = names.find(',');
    // To Prometheus, an empty value is the same as a missing label.
    if (!label.empty()) {
      sample.label.push_back({std::string(names.substr(0, comma)), std::string(label)});
    }
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  }
  (family.type == prometheus::MetricType::Counter ? sample.counter.value : sample.gauge.value) = value;
}

}  // namespace rnicd::metrics
