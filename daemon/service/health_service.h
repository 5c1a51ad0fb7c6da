#pragma once

#include <memory>

#include "daemon/gate/gate.h"
#include "daemon/health/health_board.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace rnicd::service {

// The gRPC health protocol: see health.proto. The library of gRPC has one too, which would let in everybody, past the
// gate. One per connection; `board` outlives it and its streams. Threads: safe.
std::unique_ptr<grpc::Service> MakeHealthService(gate::Gate gate, health::HealthBoard& board);

}  // namespace rnicd::service
