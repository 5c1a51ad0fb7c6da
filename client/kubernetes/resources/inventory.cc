#include "client/kubernetes/resources/inventory.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/admin/amounts.h"

namespace rnicd::kubernetes {
namespace {

absl::Status Wrong(const ResourceSpec& resource, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("resource '", resource.name, "': ", why));
}

// For each node, in ascending order, whether one of its adapters is healthy. Adapters without a node come first.
using NodeHealth = std::map<int, bool>;

NodeHealth HealthOf(std::span<const AdapterFacts> adapters) {
  NodeHealth nodes;
  for (const AdapterFacts& adapter : adapters) {
    bool& healthy = nodes[std::max(adapter.numa_node, kNoNumaNode)];
    healthy = healthy || adapter.healthy;
  }
  if (nodes.empty()) {
    nodes[kNoNumaNode] = false;
  }
  return nodes;
}

std::string IdOf(int numa_node, uint64_t number) {
  const std::string node = numa_node == kNoNumaNode ? "any" : absl::StrCat("numa", numa_node);
  return absl::StrCat(node, "-", absl::Dec(number, absl::kZeroPad4));
}

// Each node counts from 0, so more devices only add higher numbers and rename none.
std::vector<Device> Spread(uint64_t count, const NodeHealth& nodes, bool serving) {
  std::vector<Device> devices;
  devices.reserve(count);
  uint64_t left_over = count % nodes.size();
  for (const auto& [node, healthy] : nodes) {
    const uint64_t share = count / nodes.size() + (left_over > 0 ? 1 : 0);
    left_over -= left_over > 0 ? 1 : 0;
    for (uint64_t number = 0; number < share; ++number) {
      devices.push_back(Device{.id = IdOf(node, number), .numa_node = node, .healthy = serving && healthy});
    }
  }
  return devices;
}

// "numa1" of "numa1-0042".
std::string_view NodeOfId(std::string_view id) { return id.substr(0, id.find('-')); }

// Bytes of the pool that remain after fixed counts.
absl::StatusOr<uint64_t> LeftByFixedCounts(std::span<const ResourceSpec> resources, uint64_t pool_bytes) {
  uint64_t left = pool_bytes;
  for (const ResourceSpec& resource : resources) {
    if (resource.count > kMaxDevicesOfResource) {
      return Wrong(resource, absl::StrCat("more than ", kMaxDevicesOfResource, " devices"));
    }
    if (resource.count > 0 && resource.count > left / resource.unit_bytes) {
      return Wrong(resource, absl::StrCat(resource.count, " units of ", resource.unit_bytes, " bytes do not fit into ",
                                          left, " bytes that are left of the pool of ", pool_bytes));
    }
    left -= resource.count * resource.unit_bytes;
  }
  return left;
}

}  // namespace

uint64_t PoolBytes(std::span<const uint64_t> limits, uint64_t machine_bytes) {
  uint64_t lowest = std::numeric_limits<uint64_t>::max();
  bool limited = false;
  for (const uint64_t limit : limits) {
    if (limit > 0) {
      lowest = std::min(lowest, limit);
      limited = true;
    }
  }
  return limited ? lowest : machine_bytes / 2;
}

absl::StatusOr<std::map<std::string, std::vector<Device>>> PlanDevices(std::span<const ResourceSpec> resources,
                                                                       uint64_t pool_bytes,
                                                                       std::span<const AdapterFacts> adapters,
                                                                       bool serving) {
  RNICD_ASSIGN_OR_RETURN(const uint64_t left, LeftByFixedCounts(resources, pool_bytes));
  const auto sharing = static_cast<uint64_t>(
      std::count_if(resources.begin(), resources.end(), [](const ResourceSpec& r) { return r.count == 0; }));
  const NodeHealth nodes = HealthOf(adapters);
  std::map<std::string, std::vector<Device>> plan;
  for (const ResourceSpec& resource : resources) {
    const uint64_t fits = resource.count > 0 ? resource.count : left / sharing / resource.unit_bytes;
    if (fits == 0) {
      return Wrong(resource, absl::StrCat("not a single unit of ", resource.unit_bytes,
                                          " bytes fits into its share of the pool of ", pool_bytes, " bytes"));
    }
    plan[resource.name] = Spread(std::min(fits, kMaxDevicesOfResource), nodes, serving);
  }
  return plan;
}

size_t CountOffered(std::span<const Device> devices, std::span<const std::string> ids) {
  // Number of devices by node.
  std::map<std::string_view, uint64_t> counts;
  for (const Device& device : devices) {
    ++counts[NodeOfId(device.id)];
  }
  return static_cast<size_t>(std::count_if(ids.begin(), ids.end(), [&](std::string_view id) {
    const std::string_view node = NodeOfId(id);
    const auto count = counts.find(node);
    const size_t dash = node.size();
    return count == counts.end() ||
           (dash < id.size() && ParseNumber(id.substr(dash + 1), count->second - 1).has_value());
  }));
}

}  // namespace rnicd::kubernetes
