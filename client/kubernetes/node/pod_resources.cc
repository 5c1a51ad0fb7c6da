#include "client/kubernetes/node/pod_resources.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "absl/strings/str_cat.h"
#include "client/kubernetes/kubelet/grpc_channel.h"
#include "kubelet/podresources/pod_resources.grpc.pb.h"

namespace rnicd::kubernetes {
namespace {

constexpr std::chrono::seconds kDeadline{5};

// The kubelet lists each device in a separate entry, in any order.
void AppendHolders(const ::v1::PodResources& pod, const ::v1::ContainerResources& container,
                   const std::vector<std::string>& resources, std::vector<Holder>& holders) {
  std::map<std::string, size_t> places;
  for (const ::v1::ContainerDevices& devices : container.devices()) {
    if (devices.device_ids().empty() ||
        std::find(resources.begin(), resources.end(), devices.resource_name()) == resources.end()) {
      continue;
    }
    const auto [place, is_new] = places.try_emplace(devices.resource_name(), holders.size());
    if (is_new) {
      holders.push_back(Holder{.namespace_name = pod.namespace_(),
                               .pod = pod.name(),
                               .container = container.name(),
                               .resource = devices.resource_name(),
                               .device_ids = {}});
    }
    std::vector<std::string>& ids = holders[place->second].device_ids;
    ids.insert(ids.end(), devices.device_ids().begin(), devices.device_ids().end());
  }
}

}  // namespace

absl::StatusOr<PodResourcesList> PodResources::List(const std::vector<std::string>& resources) const {
  // A new channel for each call: a kept channel waits up to minutes before it reconnects to a kubelet that was away.
  const std::unique_ptr<::v1::PodResourcesLister::Stub> stub =
      ::v1::PodResourcesLister::NewStub(MakeUnixChannel(socket_path_));
  const absl::StatusOr<::v1::ListPodResourcesResponse> response =
      CallUnary(*stub, &::v1::PodResourcesLister::Stub::List, {}, kDeadline);
  if (!response.ok()) {
    return absl::Status(response.status().code(),
                        absl::StrCat("no answer from the kubelet about pod resources: ", response.status().message()));
  }
  PodResourcesList list;
  for (const ::v1::PodResources& pod : response->pod_resources()) {
    list.pods.insert(pod.namespace_() + "/" + pod.name());
    for (const ::v1::ContainerResources& container : pod.containers()) {
      AppendHolders(pod, container, resources, list.holders);
    }
  }
  if (!own_pod_.empty() && !list.pods.contains(own_pod_)) {
    return absl::UnavailableError("the kubelet does not know its pods: " + own_pod_ + " is not among them");
  }
  return list;
}

}  // namespace rnicd::kubernetes
