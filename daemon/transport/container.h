#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "daemon/core/caller.h"

namespace rnicd::transport {

// More than any kernel says of a process: a path of at most 4096 bytes for each hierarchy.
inline constexpr size_t kMaxCgroupsBytes = 64 << 10;

// The pod and the container of a process, from the text of its /proc/<pid>/cgroup. `own` is the same text of the daemon
// itself: the groups that it lives in count as the node, so that it tells pods apart on a node that is itself a
// container. Both fields are empty for a process of the node.
//
// Threat: whoever owns a group may make groups below it, with any name but one with a line break. So a path is read
// from its root, and only as far as it was written by those who run the node: slices, which the system's service
// manager makes, and the folders of kubelets and container engines. The first pod on that way is the truth, and what
// stands directly behind it is its container; what is deeper is the client's own words. Where others may write, such as
// below the services of users, a container is not believed, and what looks like a pod is an error. Errors:
// kInvalidArgument for what no kernel writes, for something of Kubernetes that names no pod or one with a bad UID, for
// a pod where it cannot be believed, and when two hierarchies name different pods or containers.
absl::StatusOr<core::Container> ParseCgroups(std::string_view text, std::string_view own = {});

}  // namespace rnicd::transport
