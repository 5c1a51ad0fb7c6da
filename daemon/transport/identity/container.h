#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "daemon/core/tenant/caller.h"

namespace rnicd::transport {

// More than any kernel writes for a process: a path of at most 4096 bytes for each hierarchy.
inline constexpr size_t kMaxCgroupsBytes = 64 << 10;

// The pod and the container of a process, from the text of its /proc/<pid>/cgroup. `own` is the same text for the
// daemon: groups that contain the daemon count as the node, so that pods are recognized on a node that is itself a
// container. Both fields are empty for a process of the node.
//
// Threat: the owner of a group may make groups below it, with any name but one with a line break. So a path is read
// from its root, and only as far as it was written by the node's administrators: slices, which the system's service
// manager makes, and the folders of kubelets and container engines. The first pod on that way is trusted, and the name
// directly behind it is its container; deeper names are chosen by the client. Where others may write, such as below the
// services of users, a container is not trusted, and a name that looks like a pod is an error.
// Errors: kInvalidArgument for text that no kernel writes, for a Kubernetes name without a pod or with a bad UID, for a
// pod where it cannot be trusted, and when two hierarchies name different pods or containers.
absl::StatusOr<core::Container> ParseCgroups(std::string_view text, std::string_view own = {});

}  // namespace rnicd::transport
