#pragma once

#include <vector>

#include "daemon/gate/method.h"
#include "daemon/health/health_board.h"

namespace rnicd::service {

// The gRPC health protocol: see health.proto. `board` outlives the methods and their streams.
std::vector<gate::Method> HealthMethods(health::HealthBoard& board);

}  // namespace rnicd::service
