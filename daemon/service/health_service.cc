#include "daemon/service/service_methods.h"

#include <memory>
#include <string>

#include "base/status.h"
#include "daemon/service/health_stream.h"
#include "grpc/health/v1/health.pb.h"

namespace rnicd::service {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Null for an unknown service.
HealthQuestion QuestionFor(const std::string& service) {
  if (service.empty() || service == "rnicd") {
    return &health::HealthBoard::ready;
  }
  return service == "rnicd.live" ? &health::HealthBoard::live : nullptr;
}

absl::Status Check(const health::HealthBoard& board, const HealthCheckRequest& request, HealthCheckResponse* response) {
  const HealthQuestion question = QuestionFor(request.service());
  if (question == nullptr) {
    return MakeError(ErrorReason::HEALTH_SERVICE_UNKNOWN, "service");
  }
  response->set_status(ToServingStatus((board.*question)()));
  return absl::OkStatus();
}

}  // namespace

std::vector<gate::Method> HealthMethods(health::HealthBoard& board) {
  return {
      gate::Serve(core::Row("Health.Check"),
                  [&board](gate::Call&, const HealthCheckRequest& request, HealthCheckResponse* response) {
                    return Check(board, request, response);
                  }),
      gate::Serve(core::Row("Health.Watch"),
                  [&board](const std::shared_ptr<gate::Call>& call, const HealthCheckRequest& request) {
                    WatchHealth(call, board, QuestionFor(request.service()));
                  }),
  };
}

}  // namespace rnicd::service
