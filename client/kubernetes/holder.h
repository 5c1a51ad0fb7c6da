#pragma once

#include <string>
#include <vector>

namespace rnicd::kubernetes {

// A container that holds devices of one resource, as reported by the kubelet.
struct Holder {
  std::string namespace_name;
  std::string pod;
  std::string container;
  std::string resource;
  std::vector<std::string> device_ids;

  friend bool operator==(const Holder&, const Holder&) = default;
};

}  // namespace rnicd::kubernetes
