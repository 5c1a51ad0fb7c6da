#pragma once

#include <memory>

#include "daemon/gate/call.h"
#include "daemon/health/health_board.h"
#include "grpc/health/v1/health.pb.h"

namespace rnicd::service {

// HealthBoard::ready or live.
using HealthQuestion = bool (health::HealthBoard::*)() const;

grpc::health::v1::HealthCheckResponse::ServingStatus ToServingStatus(bool serves);

// Writes the board's answer to an operator until the client gives up: the current one, then each change. A null
// question means an unknown service. `board` outlives the call.
void WatchHealth(const std::shared_ptr<gate::Call>& call, health::HealthBoard& board, HealthQuestion question);

}  // namespace rnicd::service
