#include "daemon/service/health_service.h"

#include <memory>
#include <string>

#include "base/status.h"
#include "daemon/service/health_stream.h"
#include "grpc/health/v1/health.pb.h"

namespace rnicd::service {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

bool IsKnown(const std::string& service) { return service.empty() || service == "rnicd"; }

absl::Status Check(const health::HealthBoard& board, const HealthCheckRequest& request, HealthCheckResponse* response) {
  if (!IsKnown(request.service())) {
    return MakeError(ErrorReason::HEALTH_SERVICE_UNKNOWN, "service");
  }
  response->set_status(ToServingStatus(board.ready()));
  return absl::OkStatus();
}

}  // namespace

std::vector<gate::Method> HealthMethods(health::HealthBoard& board) {
  return {
      gate::Now(gate::Row("Health.Check"),
                [&board](gate::Call&, const HealthCheckRequest& request, HealthCheckResponse* response) {
                  return Check(board, request, response);
                }),
      gate::Stream(gate::Row("Health.Watch"),
                   [&board](const std::shared_ptr<gate::Call>& call, const HealthCheckRequest& request) {
                     WatchHealth(call, IsKnown(request.service()) ? &board : nullptr);
                   }),
  };
}

}  // namespace rnicd::service
