#include "daemon/metrics/generations/counter_samples.h"

#include <algorithm>

namespace rnicd::metrics {
namespace {

void AddHistogram(const prometheus::ClientMetric::Histogram& from, prometheus::ClientMetric::Histogram& to) {
  to.sample_count += from.sample_count;
  to.sample_sum += from.sample_sum;
  auto next = from.bucket.begin();
  uint64_t below = 0;
  for (prometheus::ClientMetric::Bucket& bucket : to.bucket) {
    for (; next != from.bucket.end() && next->upper_bound <= bucket.upper_bound; ++next) {
      below = next->cumulative_count;
    }
    bucket.cumulative_count += below;
  }
}

}  // namespace

SortedLabels LabelsOf(const prometheus::ClientMetric& sample) {
  SortedLabels labels = sample.label;
  std::ranges::sort(labels, {}, &prometheus::ClientMetric::Label::name);
  return labels;
}

void AddSample(prometheus::MetricType type, const prometheus::ClientMetric& from, prometheus::ClientMetric& to) {
  if (type == prometheus::MetricType::Histogram) {
    AddHistogram(from.histogram, to.histogram);
  } else {
    to.counter.value += from.counter.value;
  }
}

}  // namespace rnicd::metrics
