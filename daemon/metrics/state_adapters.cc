// State of the cards and their ports.

#include <string>

#include "daemon/metrics/port_statistics.h"
#include "daemon/metrics/state_parts.h"

namespace rnicd::metrics {
namespace {

void AddPort(const provider::AdapterDescription& adapter, Families& families) {
  const PortStatistics port = ReadPortStatistics(adapter.port_folder);
  for (const char* const state : kPortStates) {
    families.Add(Metric::kPortState, {adapter.name, state}, port.state == state ? 1 : 0);
  }
  for (const auto& [name, count] : port.counts) {
    families.Add(Metric::kPortStatistics, {adapter.name, name}, static_cast<double>(count));
  }
}

void AddFastRegistrations(const provider::FastRegistrationCounts& counts, Families& families) {
  const auto add = [&](std::string_view engine, uint64_t count) {
    families.Add(Metric::kFastRegistrations, {engine, "ok"}, static_cast<double>(count));
  };
  add("native", counts.native);
  add("kernel", counts.kernel);
  add("direct", counts.direct);
  add("compose", counts.composed);
  add("window", counts.windowed);
}

}  // namespace

void AddAdapters(const Sources& sources, Families& families) {
  families.Declare(Metric::kPortState);
  families.Declare(Metric::kPortStatistics);
  provider::Provider& provider = sources.node.provider;
  for (const provider::AdapterDescription& adapter : provider.ListAdapters()) {
    families.Add(Metric::kAdapterInfo, {adapter.name, provider.name(), std::to_string(adapter.numa_node)}, 1);
    if (!adapter.port_folder.empty()) {
      AddPort(adapter, families);
    }
  }
  families.Add(Metric::kDeviceRegions, static_cast<double>(sources.device_regions()));
  AddProbes(sources, families);
}

void AddProbes(const Sources& sources, Families& families) {
  families.Declare(Metric::kAdapterHealthy);
  for (const AdapterReading& reading : sources.adapters()) {
    families.Add(Metric::kAdapterHealthy, {reading.adapter}, reading.healthy ? 1 : 0);
    families.Add(Metric::kAdapterProbes, {reading.adapter, "ok"}, static_cast<double>(reading.probes_ok));
    families.Add(Metric::kAdapterProbes, {reading.adapter, "error"}, static_cast<double>(reading.probes_failed));
    families.Add(Metric::kAdapterProbeSeconds, {reading.adapter}, reading.probe_seconds);
  }
  AddFastRegistrations(sources.node.provider.fast_registrations(), families);
}

}  // namespace rnicd::metrics
