#include "client/kubernetes/node/pod_list.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "base/pod_uid.h"

namespace rnicd::kubernetes {
namespace {

// Limits of AdminService.SetPods.
constexpr size_t kMaxLabels = 64;
constexpr size_t kMaxPods = 10'000;

using PodKey = std::pair<std::string, std::string>;

v1::ContainerInfo& ContainerOf(v1::PodInfo& pod, const std::string& name) {
  for (v1::ContainerInfo& container : *pod.mutable_containers()) {
    if (container.name() == name) {
      return container;
    }
  }
  v1::ContainerInfo& container = *pod.add_containers();
  container.set_name(name);
  return container;
}

void Add(const Holder& holder, v1::PodInfo& pod) {
  v1::DeviceSet& devices = *ContainerOf(pod, holder.container).add_devices();
  devices.set_resource_name(holder.resource);
  devices.mutable_device_ids()->Assign(holder.device_ids.begin(), holder.device_ids.end());
}

v1::PodInfo InfoOf(const ClusterPod& pod) {
  v1::PodInfo info;
  info.set_uid(pod.uid);
  info.set_namespace_(pod.namespace_name);
  info.set_name(pod.name);
  for (const auto& [key, value] : pod.labels) {
    if (info.labels_size() == kMaxLabels) {
      break;
    }
    v1::PodLabel& label = *info.add_labels();
    label.set_key(key);
    label.set_value(value);
  }
  return info;
}

}  // namespace

v1::SetPodsRequest PodList(std::span<const ClusterPod> pods, std::span<const Holder> holders) {
  std::map<PodKey, v1::PodInfo> all;
  for (const ClusterPod& pod : pods) {
    if (IsPodUid(pod.uid)) {
      all.try_emplace({pod.namespace_name, pod.name}, InfoOf(pod));
    }
  }
  for (const Holder& holder : holders) {
    v1::PodInfo& pod = all[{holder.namespace_name, holder.pod}];
    pod.set_namespace_(holder.namespace_name);
    pod.set_name(holder.pod);
    Add(holder, pod);
  }
  v1::SetPodsRequest request;
  for (auto& [key, pod] : all) {
    if (static_cast<size_t>(request.pods_size()) == kMaxPods) {
      break;
    }
    *request.add_pods() = std::move(pod);
  }
  return request;
}

}  // namespace rnicd::kubernetes
