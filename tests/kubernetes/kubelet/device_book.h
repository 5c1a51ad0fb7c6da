#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubelet/v1beta1/device_plugin.pb.h"

namespace rnicd::test {

// A container's devices of one resource.
struct Allocation {
  std::set<std::string> device_ids;
  v1beta1::ContainerAllocateResponse answer;
};

// The kubelet's account of devices and their holders. The holders and the names of the resources survive the kubelet.
// Threads: one at a time.
class DeviceBook {
 public:
  using Ids = std::set<std::string>;

  bool Knows(const std::string& resource) const { return devices_.contains(resource); }
  void Update(const std::string& resource, const v1beta1::ListAndWatchResponse& all);
  void MarkUnhealthy(const std::string& resource);
  void Forget(const std::string& resource) { devices_.erase(resource); }
  std::vector<v1beta1::Device> Devices(const std::string& resource) const;
  std::vector<std::string> Resources() const;
  Ids Healthy(const std::string& resource) const;

  Ids InUse(const std::string& resource) const;
  void Insert(const std::string& pod, const std::string& container, const std::string& resource, Allocation allocation);
  void Remove(const std::string& pod) { pods_.erase(pod); }
  // Allocations of a container by resource; empty when there is no such container.
  const std::map<std::string, Allocation>& Of(const std::string& pod, const std::string& container) const;

  // Format of Kubernetes' checkpoint, except for the checksum.
  std::string ToCheckpoint() const;
  static DeviceBook FromCheckpoint(const std::string& text);

 private:
  std::map<std::string, std::map<std::string, v1beta1::Device>> devices_;
  // Allocations by pod, container and resource.
  std::map<std::string, std::map<std::string, std::map<std::string, Allocation>>> pods_;
};

}  // namespace rnicd::test
