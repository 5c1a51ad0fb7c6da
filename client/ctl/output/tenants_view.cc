#include <algorithm>

#include "client/ctl/line/units.h"
#include "client/ctl/output/table.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

// Title of a column that is shown where some tenant uses the resource; empty otherwise.
std::string TitleIfUsed(const std::string& title, const std::vector<v1::TenantInfo>& tenants,
                        std::string_view resource) {
  const bool some = std::any_of(tenants.begin(), tenants.end(), [resource](const v1::TenantInfo& tenant) {
    return UseOf(tenant.resources(), resource).used() != 0;
  });
  return some ? title : "";
}

// Use of the daemon's own memory; empty where nothing is kept.
std::string HeapText(const v1::TenantInfo& tenant) {
  const v1::ResourceUse heap = UseOf(tenant.resources(), "heap_bytes");
  return heap.used() == 0 ? "" : UseAmount(heap);
}

std::string LingeringText(const v1::TenantInfo& tenant) {
  const uint64_t bytes = UseOf(tenant.resources(), "lingering_bytes").used();
  return bytes == 0 ? "" : FormatBytes(bytes);
}

}  // namespace

std::string TenantsText(const std::vector<v1::TenantInfo>& tenants, ItemGenerations generations) {
  // The columns without a title show how much of the limit is used.
  Table table({{"TENANT"},
               {"SESSIONS", Align::kRight},
               {"PINNED", Align::kRight},
               {""},
               {"MEMORY", Align::kRight},
               {""},
               {"REGIONS", Align::kRight},
               {""},
               {"CALLS/S", Align::kRight},
               {TitleIfUsed("HEAP", tenants, "heap_bytes"), Align::kRight},
               {TitleIfUsed("LINGERING", tenants, "lingering_bytes"), Align::kRight},
               {WorkloadTitle(tenants)}});
  for (const v1::TenantInfo& tenant : tenants) {
    const v1::ResourceUse sessions = UseOf(tenant.resources(), "sessions");
    const v1::ResourceUse pinned = UseOf(tenant.resources(), "pinned_bytes");
    const v1::ResourceUse memory = UseOf(tenant.resources(), "memory_bytes");
    const v1::ResourceUse regions = UseOf(tenant.resources(), "regions");
    table.AddRow({tenant.name(), UseAmount(sessions), UseAmount(pinned), UseBar(pinned), UseAmount(memory),
                  UseBar(memory), UseAmount(regions), UseBar(regions),
                  tenant.requests_per_second() == 0 ? "no limit" : std::to_string(tenant.requests_per_second()),
                  HeapText(tenant), LingeringText(tenant), WorkloadText(tenant.workload())});
  }
  AddGenerations(generations, table);
  return table.Text();
}

Json TenantsJson(const std::vector<v1::TenantInfo>& tenants, ItemGenerations generations) {
  Json list = Json::array();
  for (const v1::TenantInfo& tenant : tenants) {
    list.push_back({{"tenant", tenant.name()},
                    {"rule", tenant.rule()},
                    {"grant_id", std::to_string(tenant.grant_id())},
                    {"sessions", tenant.sessions()},
                    {"resources", ResourcesJson(tenant.resources())},
                    {"requests_per_second", tenant.requests_per_second()},
                    {"workload", WorkloadJson(tenant.workload())}});
  }
  AddGenerations(generations, list);
  return {{"tenants", list}};
}

}  // namespace rnicd::ctl
