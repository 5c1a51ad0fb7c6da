#include "daemon/service/health_service.h"

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "daemon/service/health_stream.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace rnicd::service {
namespace {

class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
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

std::unique_ptr<grpc::Service> MakeHealthService(gate::Gate gate, health::HealthBoard& board) {
  return std::make_unique<HealthService>(std::move(gate), board);
}

}  // namespace rnicd::service
