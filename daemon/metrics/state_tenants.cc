// Holdings, limits and activity of tenants. Tenants with the same label, "other" above all, are added up.

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/units.h"
#include "daemon/core/region/holdings.h"
#include "daemon/core/tenant/tenant_tally.h"
#include "daemon/metrics/names.h"
#include "daemon/metrics/state_parts.h"

namespace rnicd::metrics {
namespace {

using core::Resource;

// The tenants of one label.
struct Group {
  core::Holdings holdings;
  std::array<uint64_t, core::kResourceCount> used{};
  // Limits of the tenants that have one.
  std::array<uint64_t, core::kResourceCount> limit{};
  std::array<uint64_t, core::kResourceCount> used_of_limited{};
  // Empty without a door.
  std::optional<uint64_t> door_connections;
};
using Groups = std::map<std::string, Group, std::less<>>;

Groups GroupByLabel(const Sources& sources) {
  Groups groups;
  for (const std::shared_ptr<core::Tenant>& tenant : sources.node.tenants.Tenants()) {
    Group& group = groups[tenant->tally()->label()];
    for (size_t index = 0; index < core::kResourceCount; ++index) {
      const auto resource = static_cast<Resource>(index);
      const uint64_t used = tenant->ledger()->used(resource);
      // A grant that has ended has no limits any more.
      const uint64_t limit = tenant->closed() ? 0 : tenant->ledger()->limit(resource);
      group.used[index] += used;
      group.limit[index] += limit;
      group.used_of_limited[index] += limit != 0 ? used : 0;
    }
    if (tenant->door().exists()) {
      group.door_connections = group.door_connections.value_or(0) + tenant->door().connections();
    }
  }
  for (const core::SessionRegistry::Listed& listed : sources.registry.List()) {
    listed.session->AddTo(groups[listed.session->tenant().tally()->label()].holdings);
  }
  return groups;
}

double Used(const Group& group, Resource resource) {
  return static_cast<double>(group.used[static_cast<size_t>(resource)]);
}

std::string_view NameOf(core::PageUse use) { return use == core::PageUse::kRegion ? "region" : "mapping"; }
std::string_view NameOf(bool fast_register) { return fast_register ? "fast_register" : "plain"; }
std::string_view NameOf(QueuePairState state) {
  switch (state) {
    case QueuePairState::kInit:
      return "init";
    case QueuePairState::kReadyToSend:
      return "ready_to_send";
    case QueuePairState::kError:
      break;
  }
  return "error";
}

void AddHoldings(std::string_view tenant, const core::Holdings& holdings, Families& families) {
  for (const core::Holdings::Pages& row : holdings.pages) {
    const std::string page_size = std::to_string(row.page_bytes);
    families.Add(Metric::kRegisteredPages, {row.adapter, tenant, page_size, NameOf(row.use)},
                 static_cast<double>(row.count));
    families.Add(Metric::kRegisteredBytes, {row.adapter, tenant, page_size, NameOf(row.use)},
                 static_cast<double>(row.count * kNdkPageBytes));
  }
  for (const core::Holdings::Regions& row : holdings.regions) {
    families.Add(Metric::kMemoryRegions, {row.adapter, tenant, NameOf(row.fast_register)},
                 static_cast<double>(row.count));
  }
}

void AddQuota(std::string_view tenant, const Group& group, Families& families) {
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    if (group.limit[index] == 0) {
      continue;
    }
    const bool bytes = InBytes(resource);
    const std::string_view name = core::ResourceName(resource);
    families.Add(bytes ? Metric::kQuotaLimitBytes : Metric::kQuotaLimitObjects, {tenant, name},
                 static_cast<double>(group.limit[index]));
    families.Add(bytes ? Metric::kQuotaUsedBytes : Metric::kQuotaUsedObjects, {tenant, name},
                 static_cast<double>(group.used_of_limited[index]));
  }
}

// Queue pairs of all tenants: adapters times states.
void AddQueuePairs(const Sources& sources, const Groups& groups, Families& families) {
  using State = QueuePairState;
  std::map<std::pair<std::string, State>, uint64_t> counts;
  for (const provider::AdapterDescription& adapter : sources.node.provider.ListAdapters()) {
    for (const State state : {State::kInit, State::kReadyToSend, State::kError}) {
      counts[{adapter.name, state}] = 0;
    }
  }
  for (const auto& [label, group] : groups) {
    for (const core::Holdings::QueuePairs& row : group.holdings.queue_pairs) {
      counts[{row.adapter, row.state}] += row.count;
    }
  }
  for (const auto& [key, count] : counts) {
    families.Add(Metric::kQueuePairs, {key.first, NameOf(key.second)}, static_cast<double>(count));
  }
}

// A zero where nothing is held, so that sums and alerts have a series.
void AddZeros(const Sources& sources, Families& families) {
  for (const Metric metric : {Metric::kRegisteredPages, Metric::kRegisteredBytes, Metric::kMemoryRegions}) {
    if (families.Empty(metric)) {
      for (const provider::AdapterDescription& adapter : sources.node.provider.ListAdapters()) {
        families.Add(metric, {adapter.name}, 0);
      }
    }
  }
  for (const Metric metric : {Metric::kPinnedBytes, Metric::kMemoryObjects, Metric::kMemoryBytes,
                              Metric::kLingeringBytes, Metric::kHeapBytes, Metric::kSessions}) {
    if (families.Empty(metric)) {
      families.Add(metric, 0);
    }
  }
}

}  // namespace

void AddTallies(const Sources& sources, Families& families) {
  for (const Metric metric : {Metric::kTenantRefusals, Metric::kDoorRefusals, Metric::kDoorStorms}) {
    families.Declare(metric);
  }
  for (const std::shared_ptr<const core::TenantTally>& tally : sources.node.tenants.Tallies()) {
    for (const bool ok : {true, false}) {
      const std::string_view result = ok ? "ok" : "error";
      families.Add(Metric::kRegistrations, {tally->label(), result}, static_cast<double>(tally->registrations(ok)));
      families.Add(Metric::kDeregistrations, {tally->label(), result}, static_cast<double>(tally->deregistrations(ok)));
    }
    for (const auto& [reason, count] : tally->refusals()) {
      families.Add(Metric::kTenantRefusals, {tally->label(), Lower(RowOf(reason).name)}, static_cast<double>(count));
    }
    if (tally->doors() != 0) {
      families.Add(Metric::kDoorRefusals, {tally->label()}, static_cast<double>(tally->door_refusals()));
      families.Add(Metric::kDoorStorms, {tally->label()}, static_cast<double>(tally->door_storms()));
    }
  }
}

void AddTenants(const Sources& sources, Families& families) {
  const Groups groups = GroupByLabel(sources);
  for (const Metric metric :
       {Metric::kRegisteredBytes, Metric::kRegisteredPages, Metric::kQuotaLimitBytes, Metric::kQuotaUsedBytes,
        Metric::kQuotaLimitObjects, Metric::kQuotaUsedObjects, Metric::kDoorConnections}) {
    families.Declare(metric);
  }
  for (const auto& [tenant, group] : groups) {
    AddHoldings(tenant, group.holdings, families);
    AddQuota(tenant, group, families);
    families.Add(Metric::kPinnedBytes, {tenant}, Used(group, Resource::kPinnedBytes));
    families.Add(Metric::kMemoryObjects, {tenant}, Used(group, Resource::kMemoryObjects));
    families.Add(Metric::kMemoryBytes, {tenant}, Used(group, Resource::kMemoryBytes));
    families.Add(Metric::kLingeringBytes, {tenant}, Used(group, Resource::kLingeringBytes));
    families.Add(Metric::kHeapBytes, {tenant}, Used(group, Resource::kHeapBytes));
    families.Add(Metric::kSessions, {tenant}, Used(group, Resource::kSessions));
    if (group.door_connections.has_value()) {
      families.Add(Metric::kDoorConnections, {tenant}, static_cast<double>(*group.door_connections));
    }
  }
  AddQueuePairs(sources, groups, families);
  AddTallies(sources, families);
  AddZeros(sources, families);
}

}  // namespace rnicd::metrics
