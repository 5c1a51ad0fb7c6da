#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::kubernetes {

// A container's devices of one resource in the kubelet's checkpoint.
struct CheckpointEntry {
  std::string pod_uid;
  std::string container;
  std::string resource;
  std::vector<std::string> device_ids;

  friend bool operator==(const CheckpointEntry&, const CheckpointEntry&) = default;
};

// The kubelet's own record of allocated devices, "kubelet_internal_checkpoint" in its folder of device plugins. Unlike
// the pod resources API it contains init containers. An entry alone does not mean that its pod lives: the kubelet
// removes the entries of dead pods only with the next allocation.
// Source: pkg/kubelet/cm/devicemanager/checkpoint in kubernetes/kubernetes.

// The entries of these resources; none when there is no file, because the kubelet has allocated nothing yet or has lost
// it. Errors: kFailedPrecondition, with the file and the reason, for a file that others could have written or that has
// another form.
absl::StatusOr<std::vector<CheckpointEntry>> ReadKubeletCheckpoint(const std::string& folder,
                                                                   const std::vector<std::string>& resources);

// Separate, so that tests can call it. Errors: kFailedPrecondition.
absl::StatusOr<std::vector<CheckpointEntry>> ParseKubeletCheckpoint(std::string_view json,
                                                                    const std::vector<std::string>& resources);

// UID of the pod whose containers have exactly these devices; empty if there is none, if there are several, or if it
// has none of Kubernetes' forms.
std::string PodUidOf(std::span<const CheckpointEntry> entries, const std::string& resource,
                     std::vector<std::string> device_ids);

// The other resource of the container that has exactly these devices; empty if it has none, or is not in `entries`.
std::string OtherResource(std::span<const CheckpointEntry> entries, const std::string& resource,
                          std::vector<std::string> device_ids);

}  // namespace rnicd::kubernetes
