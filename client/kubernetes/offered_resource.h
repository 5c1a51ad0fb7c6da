#pragma once

#include <string>

#include "client/kubernetes/device_board.h"

namespace rnicd::kubernetes {

// A resource that is offered.
struct OfferedResource {
  std::string name;
  const DeviceBoard* board = nullptr;
};

}  // namespace rnicd::kubernetes
