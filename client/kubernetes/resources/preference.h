#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "client/kubernetes/resources/inventory.h"

namespace rnicd::kubernetes {

struct PreferenceRequest {
  std::vector<std::string> available;
  std::vector<std::string> must_include;
  // Chosen only when no others are left.
  std::set<std::string> avoid;
  size_t size = 0;
};

// Chooses `size` of the available devices, `must_include` among them: all of one NUMA node if one has enough; then
// preferably the node of `must_include`, else the node with the fewest devices left, so that large nodes stay whole;
// otherwise from as few nodes as possible. Within a node the lowest ids come first. An id that is not in `devices`
// counts as a device without a node. Returns fewer than `size` when fewer are available.
std::vector<std::string> PreferDevices(std::span<const Device> devices, const PreferenceRequest& request);

}  // namespace rnicd::kubernetes
