#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/core/node.h"
#include "daemon/core/session_registry.h"

namespace rnicd::metrics {

// What the daemon found out about an adapter by using it.
struct AdapterReading {
  std::string adapter;
  bool healthy = false;
  uint64_t probes_ok = 0;
  uint64_t probes_failed = 0;
  // Of the last probe that ended.
  double probe_seconds = 0;
};

// Where the state is read from. All outlives the metrics page; functions may be called from any thread.
struct Sources {
  const core::Node& node;
  const core::SessionRegistry& registry;
  std::function<uint64_t()> connections;
  std::function<std::vector<AdapterReading>()> adapters;
  // Registrations in the devices, without those of the daemon's own probes.
  std::function<uint64_t()> device_regions;
  // Lines that the audit log lost.
  std::function<uint64_t()> audit_lost;
};

// Everything that is read off the daemon's own tables, the kernel and the cards at a scrape, so that it cannot drift
// from them. Takes the locks of tables one after the other, none for long.
std::vector<prometheus::MetricFamily> ReadState(const Sources& sources);

}  // namespace rnicd::metrics
