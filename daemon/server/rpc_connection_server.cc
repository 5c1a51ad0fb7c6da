#include "daemon/server/rpc_connection_server.h"

#include <utility>

#include "base/status.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/gate/connection_context.h"
#include "daemon/rpc/connection.h"
#include "daemon/server/dispatcher.h"

namespace rnicd::server {
namespace {

class RpcConnection final : public door::ServedConnection {
 public:
  RpcConnection(std::shared_ptr<gate::ConnectionContext> context, std::shared_ptr<rpc::Connection> connection)
      : context_(std::move(context)), connection_(std::move(connection)) {}
  // Returns at once; the connection closes by itself after its last output, or on timeout.
  ~RpcConnection() override { connection_->Close(); }

  void Disconnected() override { context_->Disconnected(); }
  bool SilentSince(Instant since) const override { return context_->SilentSince(since); }

 private:
  const std::shared_ptr<gate::ConnectionContext> context_;
  const std::shared_ptr<rpc::Connection> connection_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RpcConnectionServer>> RpcConnectionServer::Start(
    uint32_t threads, const rpc::Limits& limits, const gate::GateServices& services, gate::MethodIndex methods,
    core::Node& node, core::SessionRegistry& registry) {
  RNICD_RETURN_IF_ERROR(methods.Check());
  std::unique_ptr<RpcConnectionServer> server(
      new RpcConnectionServer(limits, services, std::move(methods), node, registry));
  RNICD_ASSIGN_OR_RETURN(server->workloads_, rpc::Server::Start(threads, limits, services.clock));
  RNICD_ASSIGN_OR_RETURN(server->operators_, rpc::Server::Start(1, limits, services.clock));
  return server;
}

std::unique_ptr<door::ServedConnection> RpcConnectionServer::Serve(door::Admitted admitted) {
  auto context = std::make_shared<gate::ConnectionContext>(admitted.caller, node_, registry_);
  auto dispatch = [dispatcher = Dispatcher(methods_, gate::Gate(services_, context), limits_.message_bytes_max)](
                      const std::shared_ptr<rpc::ServerCall>& call) { dispatcher.Dispatch(call); };
  rpc::Server& server = admitted.caller.role == core::Role::kWorkload ? *workloads_ : *operators_;
  auto connection = server.Serve({.socket = std::move(admitted.socket),
                                  .refuses_descriptors = admitted.refuses_descriptors,
                                  .owner = core::OwnerOf(admitted.caller),
                                  .secret = admitted.secret,
                                  .on_end = std::move(admitted.on_end)},
                                 std::move(dispatch));
  return std::make_unique<RpcConnection>(std::move(context), std::move(connection));
}

}  // namespace rnicd::server
