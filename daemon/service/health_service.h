#pragma once

#include <memory>

#include "daemon/gate/gate.h"
#include "daemon/health/health_board.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace rnicd::service {

// The gRPC health protocol: see health.proto. The gRPC library's own implementation would bypass the gate and serve
// every caller. One per connection; `board` outlives it and its streams. Threads: safe.
std::unique_ptr<grpc::Service> MakeHealthService(gate::Gate gate, health::HealthBoard& board);

}  // namespace rnicd::service
