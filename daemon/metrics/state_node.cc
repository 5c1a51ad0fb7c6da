// The daemon, its process, and all tenants together.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/system/process_usage.h"
#include "daemon/core/memory/memory_pool.h"
#include "daemon/core/ring/ring_host.h"
#include "daemon/metrics/names.h"
#include "daemon/metrics/state_parts.h"

namespace rnicd::metrics {
namespace {

double AsSeconds(Instant::duration duration) { return std::chrono::duration<double>(duration).count(); }

// Unix time in seconds; 0 for never.
double UnixTime(const std::optional<Instant>& instant, const Clock& clock) {
  if (!instant.has_value()) {
    return 0;
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count() - AsSeconds(clock.Now() - *instant);
}

void AddResources(const core::Ledger& ledger, Families& families) {
  families.Declare(Metric::kNodeLimitBytes);
  families.Declare(Metric::kNodeLimitObjects);
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<core::Resource>(index);
    const bool bytes = InBytes(resource);
    const std::string_view name = core::ResourceName(resource);
    families.Add(bytes ? Metric::kNodeUsedBytes : Metric::kNodeUsedObjects, {name},
                 static_cast<double>(ledger.used(resource)));
    if (const uint64_t limit = ledger.limit(resource); limit != 0) {
      families.Add(bytes ? Metric::kNodeLimitBytes : Metric::kNodeLimitObjects, {name}, static_cast<double>(limit));
    }
  }
}

void AddProcess(double started, Families& families) {
  const ProcessUsage usage = ReadProcessUsage();
  families.Add(Metric::kProcessResident, static_cast<double>(usage.resident_bytes));
  families.Add(Metric::kProcessVirtual, static_cast<double>(usage.virtual_bytes));
  families.Add(Metric::kProcessOpenFds, static_cast<double>(usage.open_fds));
  families.Add(Metric::kProcessMaxFds, static_cast<double>(usage.max_fds));
  families.Add(Metric::kProcessThreads, static_cast<double>(usage.threads));
  families.Add(Metric::kProcessStart, started);
}

void AddRings(const core::RingCounts& counts, Families& families) {
  families.Add(Metric::kRingEntries, static_cast<double>(counts.entries));
  families.Add(Metric::kRingRequests, static_cast<double>(counts.requests));
  families.Add(Metric::kRingDoorbells, static_cast<double>(counts.doorbells));
  families.Add(Metric::kRingRefused, static_cast<double>(counts.refused));
  families.Add(Metric::kRingEmptyWakeups, static_cast<double>(counts.empty_wakeups));
  families.Add(Metric::kRingPauses, static_cast<double>(counts.pauses));
  families.Add(Metric::kRingsBroken, static_cast<double>(counts.broken));
  families.Add(Metric::kRingSpinning, std::chrono::duration<double>(counts.spinning).count());
}

// Classes with the same pages are one sample.
void AddPool(const core::MemoryPool& pool, Families& families) {
  const core::MemoryPool::State state = pool.state();
  std::map<std::pair<uint64_t, std::string>, std::pair<double, double>> bytes;
  for (const core::MemoryPool::ClassState& each : state.classes) {
    const auto& node = each.wanted.pages.numa_node;
    auto& [ready, wanted] = bytes[{each.wanted.pages.page_bytes, node.has_value() ? std::to_string(*node) : "-1"}];
    ready += static_cast<double>(each.ready * each.wanted.file_bytes);
    wanted += static_cast<double>(each.wanted.files * each.wanted.file_bytes);
  }
  for (const auto& [pages, amounts] : bytes) {
    const std::string page_size = std::to_string(pages.first);
    families.Add(Metric::kPoolReadyBytes, {page_size, pages.second}, amounts.first);
    families.Add(Metric::kPoolWantedBytes, {page_size, pages.second}, amounts.second);
  }
  for (const core::MemoryPool::Service& service : state.served) {
    const std::string page_size = std::to_string(service.page_bytes);
    families.Add(Metric::kPoolHits, {page_size}, static_cast<double>(service.hits));
    families.Add(Metric::kPoolMisses, {page_size}, static_cast<double>(service.misses));
  }
  families.Add(Metric::kPoolRefill, std::chrono::duration<double>(state.refill_time).count());
}

// On the page also without a pool, so that alert rules always have a series.
void DeclarePool(Families& families) {
  for (const Metric metric : {Metric::kPoolReadyBytes, Metric::kPoolWantedBytes, Metric::kPoolHits, Metric::kPoolMisses,
                              Metric::kPoolRefill}) {
    families.Declare(metric);
  }
}

}  // namespace

void AddNode(const Sources& sources, Families& families) {
  const core::Node& node = sources.node;
  AddResources(*node.ledger, families);
  families.Add(Metric::kTenants, static_cast<double>(node.tenants.Tenants().size()));
  families.Add(Metric::kGrants, static_cast<double>(node.tenants.Grants().size()));
  families.Add(Metric::kPods, static_cast<double>(node.tenants.Pods().size()));
  families.Add(Metric::kPodsUpdated, UnixTime(node.tenants.pods_updated(), node.clock));
  families.Add(Metric::kConnections, static_cast<double>(sources.connections()));
  families.Add(Metric::kPartsNotServing, static_cast<double>(sources.parts_not_serving()));
  families.Add(Metric::kPolicyRefused, node.tenants.policy_error().empty() ? 0 : 1);
  families.Add(Metric::kDraining, node.draining.load() ? 1 : 0);
  families.Add(Metric::kUptime, AsSeconds(node.clock.Now() - node.started));
  AddNodeCounters(sources, families);
  AddProcess(sources.process_started, families);
}

void AddNodeCounters(const Sources& sources, Families& families) {
  const core::Node& node = sources.node;
  const AuditReading audit = sources.audit();
  families.Add(Metric::kAuditLost, static_cast<double>(audit.lost));
  families.Add(Metric::kAuditMerged, static_cast<double>(audit.merged));
  families.Add(Metric::kAuditLeftOut, static_cast<double>(audit.left_out));
  families.Add(Metric::kLogDropped, static_cast<double>(sources.log_lines_lost()));
  AddRings(node.rings == nullptr ? core::RingCounts{} : node.rings->Counts(), families);
  DeclarePool(families);
  if (node.pool != nullptr) {
    AddPool(*node.pool, families);
  }
  families.Add(Metric::kProcessCpu, ReadProcessCpu());
}

}  // namespace rnicd::metrics
