#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "client/kubernetes/inventory.h"

namespace rnicd::kubernetes {

// Chooses `size` of the available devices, `must_include` among them: all of one NUMA node if one has enough; then
// preferably the node of `must_include`, else the node with the fewest devices left, so that large nodes stay whole;
// otherwise from as few nodes as possible. Within a node the lowest ids come first. An id that is not in `devices`
// counts as a device without a node. Returns fewer than `size` when fewer are available.
std::vector<std::string> PreferDevices(std::span<const Device> devices, std::span<const std::string> available,
                                       std::span<const std::string> must_include, size_t size);

}  // namespace rnicd::kubernetes
