#pragma once

#include <memory>

#include "daemon/core/node.h"
#include "daemon/core/session_registry.h"
#include "daemon/gate/gate.h"
#include "daemon/health/health_board.h"
#include "daemon/service/admin_process.h"
#include "daemon/transport/front_door.h"

namespace rnicd::server {

// Gives every connection a grpc::Server of its own: its service objects know their caller by construction, one client
// can be cut off without touching another, and gRPC never sees a listening socket. It costs some 60 us and no thread.
// Lifetime: everything it is given outlives it, and it outlives its connections.
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
