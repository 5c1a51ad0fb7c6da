#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace rnicd::metrics {

enum class Kind : uint8_t { counter, gauge, histogram };

// Every metric of the daemon; catalogue.inc alone defines them.
enum class Metric : uint8_t {
#define RNICD_METRIC(constant, kind, name, unit, labels, help) constant,
#include "daemon/metrics/catalogue.inc"
#undef RNICD_METRIC
};

struct MetricRow {
  Kind kind;
  const char* name;
  // Names of the labels, separated by commas.
  std::string_view labels;
  const char* help;
};

const MetricRow& RowOf(Metric metric);
// All metrics, in the order of the file.
std::span<const MetricRow> AllMetrics();

}  // namespace rnicd::metrics
