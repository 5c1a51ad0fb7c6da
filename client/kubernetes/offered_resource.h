#pragma once

#include <string>

#include "client/kubernetes/device_board.h"

namespace rnicd::kubernetes {

// A resource that the plugin offers.
struct OfferedResource {
  std::string name;
  const DeviceBoard* board = nullptr;
};

}  // namespace rnicd::kubernetes
