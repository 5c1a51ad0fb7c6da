#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kubernetes/resource.h"

namespace rnicd::kubernetes {

inline constexpr int kNoNumaNode = -1;
// The kubelet takes no more in one message than some megabytes.
inline constexpr uint64_t kMaxDevicesOfResource = 10'000;

// A unit of memory, as the kubelet counts it. It is no place in memory: which pages a workload gets is not decided
// here.
struct Device {
  // Stable as long as the node's adapters are: "numa1-0042", "any-0007". At most 63 characters.
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

// What all devices together may stand for: the lowest of the limits, where there is one, and at most half of the
// machine's memory otherwise. Limits of 0 are none.
uint64_t PoolBytes(std::span<const uint64_t> limits, uint64_t machine_bytes);

// The devices of each resource, by its name and in the order of ids. They are spread evenly over the NUMA nodes of the
// adapters; a device is healthy while an adapter of its node is and `serving` holds: the daemon is there and takes new
// work. Without adapters there is one set of devices without a NUMA node, all unhealthy.
// Errors: kInvalidArgument, for people: fixed counts that do not fit into the pool or are above kMaxDevicesOfResource
// (a share just stops there), a resource for which not a single unit is left.
absl::StatusOr<std::map<std::string, std::vector<Device>>> PlanDevices(std::span<const ResourceSpec> resources,
                                                                       uint64_t pool_bytes,
                                                                       std::span<const AdapterFacts> adapters,
                                                                       bool serving);

}  // namespace rnicd::kubernetes
