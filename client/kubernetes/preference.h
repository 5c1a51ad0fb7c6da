#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "client/kubernetes/inventory.h"

namespace rnicd::kubernetes {

// `size` of the available devices, `must_include` among them: all of one NUMA node if one has enough, and then the node
// of what must be included, else the node that the fewest are left of, so that large nodes stay whole; from as few
// nodes as possible otherwise. Within a node the lowest ids. Ids that are in no `devices` count as without a node.
// Fewer than `size` when there are fewer.
std::vector<std::string> PreferDevices(std::span<const Device> devices, std::span<const std::string> available,
                                       std::span<const std::string> must_include, size_t size);

}  // namespace rnicd::kubernetes
