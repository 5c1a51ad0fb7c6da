#include "daemon/metrics/state.h"

#include "daemon/metrics/state_parts.h"

namespace rnicd::metrics {

std::vector<prometheus::MetricFamily> ReadState(const Sources& sources) {
  Families families;
  AddTenants(sources, families);
  AddWorkloads(sources, families);
  AddAdapters(sources, families);
  AddNode(sources, families);
  return families.Take();
}

}  // namespace rnicd::metrics
