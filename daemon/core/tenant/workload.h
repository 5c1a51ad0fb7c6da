#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

// Tenants as Kubernetes names them: the container that holds the devices of a grant. Reported by the node's device
// plugin.
namespace rnicd::core {

// Devices of one resource of the kubelet.
struct DeviceSet {
  // "rnicd.io/memory-64mi".
  std::string resource;
  std::vector<std::string> ids;
};

struct ContainerFacts {
  std::string name;
  std::vector<DeviceSet> devices;
};

// The place where a tenant runs; all empty while unknown.
struct WorkloadName {
  std::string namespace_name;
  std::string pod;
  // Name of the container; empty for a tenant that is a whole pod.
  std::string container;

  bool known() const { return !pod.empty(); }
  friend bool operator==(const WorkloadName&, const WorkloadName&) = default;
};

struct Workload {
  WorkloadName name;
  // Devices the tenant's grant covers; null if none.
  std::shared_ptr<const DeviceSet> devices;
};

struct PodFacts;

// The container that holds each device, according to the pods. With several holders the first in the order of the pods
// counts.
class DeviceHolders {
 public:
  DeviceHolders() = default;
  explicit DeviceHolders(const std::vector<PodFacts>& pods);

  // The first container that holds any of them.
  WorkloadName HolderOf(const DeviceSet& devices) const;

 private:
  std::vector<WorkloadName> holders_;
  // Index in holders_, by resource and device.
  std::unordered_map<std::string, std::unordered_map<std::string, size_t>> places_;
};

}  // namespace rnicd::core
