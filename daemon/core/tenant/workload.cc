#include "daemon/core/tenant/workload.h"

#include <algorithm>

#include "daemon/core/tenant/policy.h"

namespace rnicd::core {

DeviceHolders::DeviceHolders(const std::vector<PodFacts>& pods) {
  for (const PodFacts& pod : pods) {
    for (const ContainerFacts& container : pod.containers) {
      for (const DeviceSet& devices : container.devices) {
        for (const std::string& id : devices.ids) {
          places_[devices.resource].emplace(id, holders_.size());
        }
      }
      holders_.push_back({.namespace_name = pod.namespace_name, .pod = pod.name, .container = container.name});
    }
  }
}

WorkloadName DeviceHolders::HolderOf(const DeviceSet& devices) const {
  const auto of_resource = places_.find(devices.resource);
  if (of_resource == places_.end()) {
    return {};
  }
  size_t first = holders_.size();
  for (const std::string& id : devices.ids) {
    const auto found = of_resource->second.find(id);
    first = found == of_resource->second.end() ? first : std::min(first, found->second);
  }
  return first == holders_.size() ? WorkloadName{} : holders_[first];
}

}  // namespace rnicd::core
