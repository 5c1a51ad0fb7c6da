#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

// Tenants as Kubernetes names them: which container holds the devices of a grant. The node's device plugin says so.
namespace rnicd::core {

// Devices of one resource of the kubelet's.
struct DeviceSet {
  // "rnicd.io/memory-64mi".
  std::string resource;
  std::vector<std::string> ids;
};

struct ContainerFacts {
  std::string name;
  std::vector<DeviceSet> devices;
};

// Where a tenant runs; all empty while nobody knows.
struct WorkloadName {
  std::string namespace_name;
  std::string pod;
  // Empty for a tenant that is a whole pod.
  std::string container;

  bool known() const { return !pod.empty(); }
  friend bool operator==(const WorkloadName&, const WorkloadName&) = default;
};

struct Workload {
  WorkloadName name;
  // What the tenant's grant covers; null for none.
  std::shared_ptr<const DeviceSet> devices;
};

struct PodFacts;

// Which container holds each device, as the pods say. Of several the first in the order of the pods.
class DeviceHolders {
 public:
  DeviceHolders() = default;
  explicit DeviceHolders(const std::vector<PodFacts>& pods);

  // The first container that holds any of them.
  WorkloadName HolderOf(const DeviceSet& devices) const;

 private:
  std::vector<WorkloadName> holders_;
  // By resource and device, the place in holders_.
  std::unordered_map<std::string, std::unordered_map<std::string, size_t>> places_;
};

}  // namespace rnicd::core
