#include "client/kubernetes/grants/node_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rnicd::kubernetes {
namespace {

std::string PodOf(const Holder& holder) { return absl::StrCat(holder.namespace_name, "/", holder.pod); }

}  // namespace

NodeView::Devices NodeView::DevicesOf(const std::string& resource, const std::vector<std::string>& ids) {
  Devices devices(resource, ids);
  std::sort(devices.second.begin(), devices.second.end());
  return devices;
}

NodeView::NodeView(const Observation& observation) : observation_(observation) {
  for (const Holder& holder : observation.holders) {
    holders_.emplace(DevicesOf(holder.resource, holder.device_ids), &holder);
    pods_with_devices_.insert(PodOf(holder));
  }
  for (const CheckpointEntry& entry : observation.checkpoint) {
    entries_.emplace(DevicesOf(entry.resource, entry.device_ids), &entry);
  }
  // The pod resources API has no UIDs, so a listed container is found in the checkpoint by its devices.
  for (const Holder& holder : observation.holders) {
    if (const std::string uid = UidOf(holder); !uid.empty()) {
      alive_[uid] = PodOf(holder);
    }
  }
  if (observation.cluster.has_value()) {
    for (const ClusterPod& pod : *observation.cluster) {
      alive_[pod.uid] = absl::StrCat(pod.namespace_name, "/", pod.name);
    }
  }
}

std::string NodeView::UidOf(const Holder& holder) const {
  const auto [begin, end] = entries_.equal_range(DevicesOf(holder.resource, holder.device_ids));
  const auto found =
      std::find_if(begin, end, [&](const auto& entry) { return entry.second->container == holder.container; });
  return found == end ? "" : found->second->pod_uid;
}

GrantHolder NodeView::HolderOf(const GrantRecord& record) const {
  const Devices devices = DevicesOf(record.resource, record.device_ids);
  if (const Holder* const holder = HolderWith(devices, record.pod); holder != nullptr) {
    return {.life = Life::kAlive,
            .pod = PodOf(*holder),
            .pod_uid = UidOf(*holder),
            .container = holder->container,
            .is_known_to_kubelet = true};
  }
  return HolderByUid(record, devices);
}

// The kubelet allocates a device to one pod at a time; a response that contradicts that must not end a grant.
const Holder* NodeView::HolderWith(const Devices& devices, const std::string& preferred_pod) const {
  const auto [begin, end] = holders_.equal_range(devices);
  const auto found =
      std::find_if(begin, end, [&](const auto& holder) { return PodOf(*holder.second) == preferred_pod; });
  return found != end ? found->second : begin != end ? begin->second : nullptr;
}

// For init containers, which only the checkpoint names, and for a pod that the kubelet lost from its checkpoint.
GrantHolder NodeView::HolderByUid(const GrantRecord& record, const Devices& devices) const {
  // Containers by the UID of their pods.
  std::map<std::string, std::string> containers;
  const auto [begin, end] = entries_.equal_range(devices);
  std::for_each(begin, end,
                [&](const auto& entry) { containers.emplace(entry.second->pod_uid, entry.second->container); });
  const bool is_known = !containers.empty();
  if (!is_known && !record.pod_uid.empty()) {
    containers.emplace(record.pod_uid, record.container);
  }
  for (const auto& [uid, container] : containers) {
    if (const auto found = alive_.find(uid); found != alive_.end()) {
      return {.life = Life::kAlive,
              .pod = found->second,
              .pod_uid = uid,
              .container = container,
              .is_known_to_kubelet = is_known};
    }
  }
  const bool is_named = !record.pod.empty() && containers.contains(record.pod_uid);
  const bool may_live = observation_.cluster_is_away && !containers.empty() && MayLive(record, is_named);
  return {.life = may_live ? Life::kUnknown : Life::kGone, .is_known_to_kubelet = is_known};
}

// While the API server is away. The kubelet lists a pod without devices when it has finished, when it has units in its
// init containers only, and when the kubelet lost its checkpoint. A pod of this name with devices is a later one, as in
// a StatefulSet.
bool NodeView::MayLive(const GrantRecord& record, bool is_named) const {
  return !is_named || (observation_.listed_pods.contains(record.pod) && !pods_with_devices_.contains(record.pod));
}

bool NodeView::HeldByAnother(const GrantRecord& record) const {
  if (record.pod.empty()) {
    return false;
  }
  const std::set<std::string> ids(record.device_ids.begin(), record.device_ids.end());
  return std::any_of(observation_.holders.begin(), observation_.holders.end(), [&](const Holder& holder) {
    return holder.resource == record.resource && PodOf(holder) != record.pod &&
           std::any_of(holder.device_ids.begin(), holder.device_ids.end(),
                       [&](const std::string& id) { return ids.contains(id); });
  });
}

std::vector<Holder> NodeView::Holders(std::span<const GrantRecord> grants) const {
  std::vector<Holder> holders;
  std::set<std::pair<std::string, std::string>> held;
  const auto add = [&](Holder holder) {
    for (const std::string& id : holder.device_ids) {
      held.emplace(holder.resource, id);
    }
    holders.push_back(std::move(holder));
  };
  std::for_each(observation_.holders.begin(), observation_.holders.end(), add);
  const auto add_unheld = [&](const std::string& pod, const std::string& container, const std::string& resource,
                              const std::vector<std::string>& ids) {
    const auto is_held = [&](const std::string& id) { return held.contains({resource, id}); };
    if (!container.empty() && std::none_of(ids.begin(), ids.end(), is_held)) {
      const size_t slash = pod.find('/');
      add({.namespace_name = pod.substr(0, slash),
           .pod = pod.substr(slash + 1),
           .container = container,
           .resource = resource,
           .device_ids = ids});
    }
  };
  for (const GrantRecord& grant : grants) {
    if (!grant.suspended && !grant.pod.empty()) {
      add_unheld(grant.pod, grant.container, grant.resource, grant.device_ids);
    }
  }
  for (const CheckpointEntry& entry : observation_.checkpoint) {
    if (const auto pod = alive_.find(entry.pod_uid); pod != alive_.end()) {
      add_unheld(pod->second, entry.container, entry.resource, entry.device_ids);
    }
  }
  return holders;
}

}  // namespace rnicd::kubernetes
