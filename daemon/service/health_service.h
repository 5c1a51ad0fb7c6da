#pragma once

#include <utility>

#include "daemon/gate/gate.h"
#include "daemon/health/health_board.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace rnicd::service {

// gRPC's health protocol: see health.proto. Our own and not the one inside gRPC, which would let in everybody, past the
// gate. One per connection. Threads: safe.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  // `board` outlives the service and its streams.
  HealthService(gate::Gate gate, health::HealthBoard& board) : gate_(std::move(gate)), board_(board) {}

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context, const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  gate::Gate gate_;
  health::HealthBoard& board_;
};

}  // namespace rnicd::service
