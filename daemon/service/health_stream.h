#pragma once

#include <memory>

#include "daemon/gate/call.h"
#include "daemon/health/health_board.h"
#include "grpc/health/v1/health.pb.h"

namespace rnicd::service {

grpc::health::v1::HealthCheckResponse::ServingStatus ToServingStatus(bool ready);

// Writes the daemon's health to an operator until the client gives up: the current state, then each change. A null
// board means an unknown service. `board` outlives the call.
void WatchHealth(const std::shared_ptr<gate::Call>& call, health::HealthBoard* board);

}  // namespace rnicd::service
