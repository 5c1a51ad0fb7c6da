#include "daemon/server/grpc_connection_server.h"

#include <grpcpp/impl/service_type.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <chrono>
#include <utility>
#include <vector>

#include "daemon/service/adapter_service.h"
#include "daemon/service/admin_service.h"
#include "daemon/service/health_service.h"
#include "daemon/service/memory_service.h"
#include "daemon/service/queue_service.h"
#include "daemon/service/session_service.h"

namespace rnicd::server {
namespace {

// Largest request in bytes; gRPC refuses a larger one with RESOURCE_EXHAUSTED.
constexpr int kMaxRequestBytes = 4 << 20;
// Maximum number of concurrent calls on one connection.
constexpr int kMaxConcurrentCalls = 1024;
// Time for a connection that the daemon closes to deliver its last responses, above all the event with the cause of the
// session's end.
constexpr std::chrono::milliseconds kLastWords{250};

class GrpcConnection final : public transport::ServedConnection {
 public:
  GrpcConnection(const gate::GateServices& services, const std::shared_ptr<gate::ConnectionContext>& context,
                 core::Node& node, core::SessionRegistry& registry, service::ProcessControl& process,
                 health::HealthBoard& health)
      : context_(context) {
    const auto gate = [&] { return gate::Gate(services, context); };
    services_.push_back(service::MakeSessionService(gate(), registry));
    services_.push_back(service::MakeAdapterService(gate(), node.provider));
    services_.push_back(service::MakeMemoryService(gate(), node.tickets));
    services_.push_back(service::MakeQueueService(gate()));
    services_.push_back(service::MakeAdminService(gate(), node, registry, process));
    services_.push_back(service::MakeHealthService(gate(), health));
  }

  // Cancels calls that do not end by themselves; Wait returns after the last of them.
  ~GrpcConnection() override {
    if (server_ != nullptr) {
      server_->Shutdown(cancel_at_);
      server_->Wait();
    }
  }

  // Returns false if gRPC cannot create a server.
  bool Start(UniqueFd socket) {
    grpc::ServerBuilder builder;
    for (const std::unique_ptr<grpc::Service>& service : services_) {
      builder.RegisterService(service.get());
    }
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxConcurrentCalls);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return false;
    }
    grpc::AddInsecureChannelFromFd(server_.get(), socket.Release());
    return true;
  }

  void Disconnected() override {
    context_->Disconnected();
    // Counted from now and not from the destructor, so that connections that end together wait together.
    cancel_at_ = std::chrono::system_clock::now() + kLastWords;
  }
  bool SilentSince(Instant since) const override { return context_->SilentSince(since); }

 private:
  const std::shared_ptr<gate::ConnectionContext> context_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::chrono::system_clock::time_point cancel_at_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

GrpcConnectionServer::GrpcConnectionServer(const gate::GateServices& services, core::Node& node,
                                           core::SessionRegistry& registry, service::ProcessControl& process,
                                           health::HealthBoard& health)
    : services_(services), node_(node), registry_(registry), process_(process), health_(health) {}

std::unique_ptr<transport::ServedConnection> GrpcConnectionServer::Serve(UniqueFd socket, const core::Caller& caller) {
  const auto context = std::make_shared<gate::ConnectionContext>(caller, node_, registry_);
  auto connection = std::make_unique<GrpcConnection>(services_, context, node_, registry_, process_, health_);
  return connection->Start(std::move(socket)) ? std::move(connection) : nullptr;
}

}  // namespace rnicd::server
