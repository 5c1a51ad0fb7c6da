#pragma once

#include <memory>

#include "daemon/core/node.h"
#include "daemon/core/session_registry.h"
#include "daemon/gate/gate.h"
#include "daemon/health/health_board.h"
#include "daemon/service/admin_process.h"
#include "daemon/transport/front_door.h"

namespace rnicd::server {

// Serves every connection with its own grpc::Server: service objects get their caller by construction, one client can
// be disconnected without affecting another, and gRPC never has a listening socket. A server costs about 60 us and no
// thread. Lifetime: the constructor's arguments outlive it, and it outlives its connections.
class GrpcConnectionServer final : public transport::ConnectionServer {
 public:
  GrpcConnectionServer(const gate::GateServices& services, core::Node& node, core::SessionRegistry& registry,
                       service::ProcessControl& process, health::HealthBoard& health);

  std::unique_ptr<transport::ServedConnection> Serve(UniqueFd socket, const core::Caller& caller) override;

 private:
  const gate::GateServices services_;
  core::Node& node_;
  core::SessionRegistry& registry_;
  service::ProcessControl& process_;
  health::HealthBoard& health_;
};

}  // namespace rnicd::server
