#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/core/request/node.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/door/connection_server.h"
#include "daemon/gate/call.h"
#include "daemon/gate/method.h"
#include "daemon/rpc/bounds/limits.h"
#include "daemon/rpc/server.h"

namespace rnicd::server {

// Serves every connection with a context of its own, so that the caller of each call is known by construction and one
// client can be disconnected without affecting another.
// Lifetime: Start's arguments outlive it, and it outlives its connections; the destructor ends the remaining ones.
class RpcConnectionServer final : public door::ConnectionServer {
 public:
  // `threads` serve workloads. Errors: those of MethodIndex::Check and rpc::Server::Start.
  static absl::StatusOr<std::unique_ptr<RpcConnectionServer>> Start(uint32_t threads, const rpc::Limits& limits,
                                                                    const gate::GateServices& services,
                                                                    gate::MethodIndex methods, core::Node& node,
                                                                    core::SessionRegistry& registry);

  std::unique_ptr<door::ServedConnection> Serve(door::Admitted admitted) override;

  const rpc::Server& workloads() const { return *workloads_; }
  const rpc::Server& operators() const { return *operators_; }

 private:
  RpcConnectionServer(const rpc::Limits& limits, const gate::GateServices& services, gate::MethodIndex methods,
                      core::Node& node, core::SessionRegistry& registry)
      : limits_(limits), services_(services), methods_(std::move(methods)), node_(node), registry_(registry) {}

  const rpc::Limits limits_;
  const gate::GateServices services_;
  const gate::MethodIndex methods_;
  core::Node& node_;
  core::SessionRegistry& registry_;
  // Last: their calls use the rest. Operators have a thread and a budget of their own, so that they are served whatever
  // workloads do.
  std::unique_ptr<rpc::Server> workloads_;
  std::unique_ptr<rpc::Server> operators_;
};

}  // namespace rnicd::server
