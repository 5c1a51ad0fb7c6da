#include "daemon/service/health_service.h"

#include <memory>
#include <string>

#include "base/status.h"
#include "daemon/service/health_stream.h"

namespace rnicd::service {
namespace {

bool IsKnown(const std::string& service) { return service.empty() || service == "rnicd"; }

}  // namespace

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* /*context*/,
                                               const grpc::health::v1::HealthCheckRequest* request,
                                               grpc::health::v1::HealthCheckResponse* response) {
  return gate_.Unary(gate::Row("Health.Check"), request, response, [&](gate::Call&) {
    if (!IsKnown(request->service())) {
      return MakeError(ErrorReason::HEALTH_SERVICE_UNKNOWN, "service");
    }
    response->set_status(ToServingStatus(board_.ready()));
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext* /*context*/, const grpc::health::v1::HealthCheckRequest* request) {
  using Reactor = grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>;
  return gate_.Stream(
      gate::Row("Health.Watch"), request,
      [&](const std::shared_ptr<gate::Call>& call) -> Reactor* {
        return new HealthStream(call, IsKnown(request->service()) ? &board_ : nullptr);
      },
      [](const std::shared_ptr<gate::Call>& call) { return new RefusedStream<HealthStream::Response>(call); });
}

}  // namespace rnicd::service
