#include "daemon/metrics/catalogue.h"

#include <cstddef>

namespace rnicd::metrics {
namespace {

constexpr MetricRow kRows[] = {
#define RNICD_METRIC(constant, kind, name, unit, labels, help) {Kind::kind, name, labels, help},
#include "daemon/metrics/catalogue.inc"
#undef RNICD_METRIC
};

}  // namespace

const MetricRow& RowOf(Metric metric) { return kRows[static_cast<size_t>(metric)]; }

std::span<const MetricRow> AllMetrics() { return kRows; }

}  // namespace rnicd::metrics
