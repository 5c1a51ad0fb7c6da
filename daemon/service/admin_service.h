#pragma once

#include "daemon/core/node.h"
#include "daemon/core/session_registry.h"
#include "daemon/gate/gate.h"
#include "daemon/service/admin_process.h"
#include "daemon/service/admin_view.h"
#include "rnicd/v1/admin_service.grpc.pb.h"

namespace rnicd::service {

// The operator's side: see admin_service.proto. One per connection. Threads: safe.
class AdminService final : public v1::AdminService::CallbackService {
 public:
  // All but the gate outlive the service.
  AdminService(gate::Gate gate, core::Node& node, core::SessionRegistry& registry, ProcessControl& process);

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* ListSessions(grpc::CallbackServerContext* context, const v1::ListSessionsRequest* request,
                                         v1::ListSessionsResponse* response) override;
  grpc::ServerUnaryReactor* ListRegions(grpc::CallbackServerContext* context, const v1::ListRegionsRequest* request,
                                        v1::ListRegionsResponse* response) override;
  grpc::ServerUnaryReactor* ListTenants(grpc::CallbackServerContext* context, const v1::ListTenantsRequest* request,
                                        v1::ListTenantsResponse* response) override;
  grpc::ServerUnaryReactor* InspectSession(grpc::CallbackServerContext* context,
                                           const v1::InspectSessionRequest* request,
                                           v1::InspectSessionResponse* response) override;
  grpc::ServerUnaryReactor* DumpState(grpc::CallbackServerContext* context, const v1::DumpStateRequest* request,
                                      v1::DumpStateResponse* response) override;

  grpc::ServerUnaryReactor* EvictSession(grpc::CallbackServerContext* context, const v1::EvictSessionRequest* request,
                                         v1::EvictSessionResponse* response) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context, const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;
  grpc::ServerUnaryReactor* SetLogLevel(grpc::CallbackServerContext* context, const v1::SetLogLevelRequest* request,
                                        v1::SetLogLevelResponse* response) override;
  grpc::ServerUnaryReactor* ReloadPolicy(grpc::CallbackServerContext* context, const v1::ReloadPolicyRequest* request,
                                         v1::ReloadPolicyResponse* response) override;

  grpc::ServerUnaryReactor* CreateGrant(grpc::CallbackServerContext* context, const v1::CreateGrantRequest* request,
                                        v1::CreateGrantResponse* response) override;
  grpc::ServerUnaryReactor* RevokeGrant(grpc::CallbackServerContext* context, const v1::RevokeGrantRequest* request,
                                        v1::RevokeGrantResponse* response) override;
  grpc::ServerUnaryReactor* ListGrants(grpc::CallbackServerContext* context, const v1::ListGrantsRequest* request,
                                       v1::ListGrantsResponse* response) override;
  grpc::ServerUnaryReactor* SetPods(grpc::CallbackServerContext* context, const v1::SetPodsRequest* request,
                                    v1::SetPodsResponse* response) override;

 private:
  gate::Gate gate_;
  core::Node& node_;
  core::SessionRegistry& registry_;
  ProcessControl& process_;
  const AdminView view_;
};

}  // namespace rnicd::service
