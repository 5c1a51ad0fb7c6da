#include <memory>

#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "tests/bench/bare_echo.h"

namespace rnicd::bench {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// The call that the benchmark makes to the daemon, answered at once.
class Service final : public Health::CallbackService {
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context, const HealthCheckRequest* /*request*/,
                                  HealthCheckResponse* response) override {
    response->set_status(HealthCheckResponse::SERVING);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

void ServeGrpcEcho(const std::string& socket_path) {
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_path, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  if (const std::unique_ptr<grpc::Server> server = builder.BuildAndStart(); server != nullptr) {
    AnnounceBareEcho();
    server->Wait();
  }
}

}  // namespace rnicd::bench
