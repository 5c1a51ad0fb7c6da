#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "daemon/metrics/catalogue.h"

namespace rnicd::metrics {

// Families of samples, collected for one scrape.
// Threads: one.
class Families {
 public:
  // One sample; `labels` are the values in the order of the catalogue.
  void Add(Metric metric, std::initializer_list<std::string_view> labels, double value);
  void Add(Metric metric, double value) { Add(metric, {}, value); }
  // Puts the family on the page, with its help text, even without a sample.
  void Declare(Metric metric) { FamilyOf(metric); }
  bool Empty(Metric metric) const;

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  prometheus::MetricFamily& FamilyOf(Metric metric);

  std::vector<prometheus::MetricFamily> families_;
  // Index of each metric's family in families_, plus one; 0 for a family that does not exist yet.
  std::array<size_t, 256> places_{};
};

}  // namespace rnicd::metrics
