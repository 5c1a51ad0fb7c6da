#include "daemon/service/messages/workload_wire.h"

#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "daemon/service/messages/field_checks.h"

namespace rnicd::service {
namespace {

// Form of a device's name: a DNS name, a slash and a name.
constexpr size_t kResourceBytesMax = 317;
constexpr int kDevicesMax = 10'000;
constexpr size_t kDeviceBytesMax = 63;
constexpr size_t kContainerBytesMax = 63;
constexpr int kSetsMax = 64;

bool IsName(std::string_view text, size_t most) { return !text.empty() && IsText(text, most); }

}  // namespace

absl::StatusOr<core::DeviceSet> DevicesFromWire(const v1::DeviceSet& devices, const std::string& field) {
  if (!IsName(devices.resource_name(), kResourceBytesMax)) {
    return OutOfRange(field + ".resource_name");
  }
  if (devices.device_ids_size() > kDevicesMax) {
    return OutOfRange(field + ".device_ids");
  }
  std::set<std::string_view> seen;
  for (int index = 0; index < devices.device_ids_size(); ++index) {
    const std::string& id = devices.device_ids(index);
    if (!IsName(id, kDeviceBytesMax) || !seen.insert(id).second) {
      return OutOfRange(At(field + ".device_ids", index));
    }
  }
  return core::DeviceSet{.resource = devices.resource_name(),
                         .ids = {devices.device_ids().begin(), devices.device_ids().end()}};
}

v1::DeviceSet ToWire(const core::DeviceSet& devices) {
  v1::DeviceSet wire;
  wire.set_resource_name(devices.resource);
  wire.mutable_device_ids()->Assign(devices.ids.begin(), devices.ids.end());
  return wire;
}

absl::StatusOr<core::ContainerFacts> ContainerFromWire(const v1::ContainerInfo& container, const std::string& field) {
  if (!IsName(container.name(), kContainerBytesMax)) {
    return OutOfRange(field + ".name");
  }
  if (container.devices_size() > kSetsMax) {
    return OutOfRange(field + ".devices");
  }
  core::ContainerFacts facts{.name = container.name(), .devices = {}};
  for (int index = 0; index < container.devices_size(); ++index) {
    RNICD_ASSIGN_OR_RETURN(core::DeviceSet devices,
                           DevicesFromWire(container.devices(index), At(field + ".devices", index)));
    facts.devices.push_back(std::move(devices));
  }
  return facts;
}

v1::ContainerInfo ToWire(const core::ContainerFacts& container) {
  v1::ContainerInfo wire;
  wire.set_name(container.name);
  for (const core::DeviceSet& devices : container.devices) {
    *wire.add_devices() = ToWire(devices);
  }
  return wire;
}

v1::PodInfo ToWire(const core::PodFacts& pod) {
  v1::PodInfo wire;
  wire.set_uid(pod.uid);
  wire.set_namespace_(pod.namespace_name);
  wire.set_name(pod.name);
  for (const auto& [key, value] : pod.labels) {
    v1::PodLabel& label = *wire.add_labels();
    label.set_key(key);
    label.set_value(value);
  }
  for (const core::ContainerFacts& container : pod.containers) {
    *wire.add_containers() = ToWire(container);
  }
  return wire;
}

v1::WorkloadName ToWire(const core::WorkloadName& name) {
  v1::WorkloadName wire;
  wire.set_namespace_(name.namespace_name);
  wire.set_pod_name(name.pod);
  wire.set_container(name.container);
  return wire;
}

}  // namespace rnicd::service
