// Workloads of tenants, and the kubelet's devices that their grants cover. Only tenants with a label of their own:
// "other" runs in many places.

#include <memory>
#include <string>
#include <utility>

#include "daemon/metrics/state_parts.h"

namespace rnicd::metrics {
namespace {

// The limit stated in the help text of rnicd_device_info.
constexpr size_t kDeviceSeriesMax = 1000;

void AddDevices(std::string_view tenant, const core::DeviceSet& devices, size_t& room, Families& families) {
  families.Add(Metric::kTenantDevices, {tenant, devices.resource}, static_cast<double>(devices.ids.size()));
  for (const std::string& id : devices.ids) {
    if (room == 0) {
      return;
    }
    families.Add(Metric::kDeviceInfo, {tenant, devices.resource, id}, 1);
    --room;
  }
}

}  // namespace

void AddWorkloads(const Sources& sources, Families& families) {
  for (const Metric metric : {Metric::kTenantInfo, Metric::kTenantDevices, Metric::kDeviceInfo}) {
    families.Declare(metric);
  }
  size_t room = kDeviceSeriesMax;
  std::string previous;
  for (const std::shared_ptr<core::Tenant>& tenant : sources.node.tenants.Tenants()) {
    // Two of the same name, next to each other, are a grant and one that has ended.
    const bool again = tenant->name() == std::exchange(previous, tenant->name());
    if (again || tenant->tally()->label() != tenant->name()) {
      continue;
    }
    const std::shared_ptr<const core::Workload> workload = tenant->workload();
    if (const core::WorkloadName& name = workload->name; name.known()) {
      families.Add(Metric::kTenantInfo, {tenant->name(), name.namespace_name, name.pod, name.container}, 1);
    }
    if (workload->devices != nullptr) {
      AddDevices(tenant->name(), *workload->devices, room, families);
    }
  }
}

}  // namespace rnicd::metrics
