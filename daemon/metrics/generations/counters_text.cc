#include <prometheus/text_serializer.h>

#include <algorithm>

#include "daemon/metrics/catalogue.h"
#include "daemon/metrics/generations/inherited_counters.h"
#include "daemon/metrics/metrics.h"
#include "daemon/metrics/state.h"

namespace rnicd::metrics {
namespace {

// All but the kernel's counters of a port: both generations read the same ones, which no hand-over resets. The
// processor time is handed on as well, although each process has its own: the older one goes on working for its
// sessions, and only the newer one's page can say so.
bool IsHandedOn(const prometheus::MetricFamily& family) {
  using prometheus::MetricType;
  return (family.type == MetricType::Counter || family.type == MetricType::Histogram) &&
         family.name != RowOf(Metric::kPortStatistics).name;
}

// Most methods are never called, and each has some twenty lines; the newer generation has the same ones.
void LeaveOutEmpty(prometheus::MetricFamily& family) {
  if (family.type == prometheus::MetricType::Histogram) {
    std::erase_if(family.metric, [](const auto& sample) { return sample.histogram.sample_count == 0; });
  }
}

}  // namespace

std::string CountersText(const Metrics& metrics, const Sources& sources) {
  std::vector<prometheus::MetricFamily> families = metrics.Collect(ReadCounters(sources));
  if (sources.inherited != nullptr) {
    sources.inherited->AddTo(families);
  }
  std::erase_if(families, [](const auto& family) { return !IsHandedOn(family); });
  std::ranges::for_each(families, LeaveOutEmpty);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace rnicd::metrics
