#include "daemon/metrics/state.h"

#include "daemon/metrics/state_parts.h"

namespace rnicd::metrics {

std::vector<prometheus::MetricFamily> ReadState(const Sources& sources) {
  Families families;
  AddTenants(sources, families);
  AddWorkloads(sources, families);
  AddAdapters(sources, families);
  AddNode(sources, families);
  AddGenerations(sources, families);
  return families.Take();
}

std::vector<prometheus::MetricFamily> ReadCounters(const Sources& sources) {
  Families families;
  AddTallies(sources, families);
  AddProbes(sources, families);
  AddNodeCounters(sources, families);
  return families.Take();
}

}  // namespace rnicd::metrics
