#pragma once

#include <prometheus/metric_family.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/core/request/node.h"
#include "daemon/core/request/older_generation.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/metrics/generations/inherited_counters.h"

namespace rnicd::metrics {

// Findings about an adapter from its probes.
struct AdapterReading {
  std::string adapter;
  bool healthy = false;
  uint64_t probes_ok = 0;
  uint64_t probes_failed = 0;
  // Duration of the last probe that ended.
  double probe_seconds = 0;
};

// Decisions that have no line of their own in the audit log.
struct AuditReading {
  uint64_t lost = 0;
  uint64_t merged = 0;
  uint64_t left_out = 0;
};

// Sources of the state. All outlive the metrics page; functions may be called from any thread.
struct Sources {
  const core::Node& node;
  const core::SessionRegistry& registry;
  std::function<uint64_t()> connections;
  std::function<std::vector<AdapterReading>()> adapters;
  // Number of registrations in the devices, without those of the daemon's own probes.
  std::function<uint64_t()> device_regions;
  std::function<AuditReading()> audit;
  std::function<uint64_t()> log_lines_lost;
  std::function<size_t()> parts_not_serving;
  // Unix time in seconds: read once, because a reader of the metric takes each other value for a restart.
  double process_started = 0;
  // Null where nothing is inherited.
  const InheritedCounters* inherited = nullptr;
  // Those that still serve sessions.
  std::function<std::vector<core::OlderGeneration>()> older_generations = [] {
    return std::vector<core::OlderGeneration>();
  };
};

// Reads all values that come from the daemon's own tables, the kernel and the cards at a scrape, so that they cannot
// drift apart. Takes the locks of tables one after the other, none for long.
std::vector<prometheus::MetricFamily> ReadState(const Sources& sources);
// The counters among them, but for those of ports. Nobody is accepted meanwhile, so it neither looks at each region nor
// waits for a card.
std::vector<prometheus::MetricFamily> ReadCounters(const Sources& sources);

}  // namespace rnicd::metrics
