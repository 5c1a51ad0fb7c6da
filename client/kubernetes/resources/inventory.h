#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kubernetes/resources/resource.h"

namespace rnicd::kubernetes {

inline constexpr int kNoNumaNode = -1;
// The kubelet accepts messages of a few megabytes at most.
inline constexpr uint64_t kMaxDevicesOfResource = 10'000;

// A unit of memory that the kubelet counts. It is not a location in memory: which pages a workload gets is decided
// elsewhere.
struct Device {
  // Stable while the node's adapters stay the same: "numa1-0042", "any-0007". At most 63 characters.
  std::string id;
  int numa_node = kNoNumaNode;
  bool healthy = false;

  friend bool operator==(const Device&, const Device&) = default;
};

// An adapter of the node, as the daemon describes it.
struct AdapterFacts {
  int numa_node = kNoNumaNode;
  bool healthy = false;
};

// Total bytes of all devices: the lowest of the limits; without a limit, at most half of the machine's memory. A limit
// of 0 means no limit.
uint64_t PoolBytes(std::span<const uint64_t> limits, uint64_t machine_bytes);

// Devices of each resource, keyed by its name and ordered by id. They are spread evenly over the NUMA nodes of the
// adapters; a device is healthy while an adapter of its node is and `serving` is true: the daemon responds and accepts
// new work. Without adapters there is one set of devices without a NUMA node, all unhealthy.
// Errors: kInvalidArgument, with text for people: fixed counts that do not fit into the pool or exceed
// kMaxDevicesOfResource (a share is capped there instead), or a resource for which not a single unit is left.
absl::StatusOr<std::map<std::string, std::vector<Device>>> PlanDevices(std::span<const ResourceSpec> resources,
                                                                       uint64_t pool_bytes,
                                                                       std::span<const AdapterFacts> adapters,
                                                                       bool serving);

// How many of the ids are devices of the node: all but those beyond the last device of their NUMA node, where the pool
// has become smaller. An id of a node without any device counts: its adapter may only be away.
size_t CountOffered(std::span<const Device> devices, std::span<const std::string> ids);

}  // namespace rnicd::kubernetes
