#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubelet/v1beta1/device_plugin.pb.h"

namespace rnicd::test {

// What a container got of one resource.
struct Allocation {
  std::set<std::string> device_ids;
  v1beta1::ContainerAllocateResponse answer;
};

// The kubelet's account of devices and of who holds them. The second half is what survives the kubelet, with the names
// of the resources. Threads: one at a time.
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
  // By resource; empty when there is no such container.
  std::map<std::string, Allocation> Of(const std::string& pod, const std::string& container) const;

  // As Kubernetes writes it, but for the checksum.
  std::string ToCheckpoint() const;
  static DeviceBook FromCheckpoint(const std::string& text);

 private:
  std::map<std::string, std::map<std::string, v1beta1::Device>> devices_;
  // By pod, container and resource.
  std::map<std::string, std::map<std::string, std::map<std::string, Allocation>>> pods_;
};

}  // namespace rnicd::test
