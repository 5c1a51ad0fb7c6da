#pragma once

#include <vector>

#include "daemon/gate/method.h"

namespace rnicd::service {

// Completion queues, queue pairs, work requests and memory windows: see queue_service.proto.
std::vector<gate::Method> QueueMethods();

}  // namespace rnicd::service
