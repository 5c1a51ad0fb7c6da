#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "daemon/core/node.h"
#include "daemon/core/session_registry.h"
#include "daemon/gate/gate.h"
#include "rnicd/v1/admin_service.grpc.pb.h"

namespace rnicd::service {

// What GetStatus says about the process rather than about core. Asked at every call.
class ProcessFacts {
 public:
  virtual ~ProcessFacts() = default;
  virtual std::string version() const = 0;
  // host:port, or empty.
  virtual std::string metrics_address() const = 0;
  virtual uint64_t connections() const = 0;
};

// The operator's view: see admin_service.proto. One per connection. Threads: safe.
class AdminService final : public v1::AdminService::CallbackService {
 public:
  // All but the gate outlive the service.
  AdminService(gate::Gate gate, core::Node& node, const core::SessionRegistry& registry, const ProcessFacts& facts);

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* ListSessions(grpc::CallbackServerContext* context, const v1::ListSessionsRequest* request,
                                         v1::ListSessionsResponse* response) override;
  grpc::ServerUnaryReactor* ListRegions(grpc::CallbackServerContext* context, const v1::ListRegionsRequest* request,
                                        v1::ListRegionsResponse* response) override;

 private:
  void FillStatus(v1::GetStatusResponse* response) const;
  v1::SessionInfo ToInfo(const core::SessionRegistry::Listed& listed) const;

  gate::Gate gate_;
  core::Node& node_;
  const core::SessionRegistry& registry_;
  const ProcessFacts& facts_;
};

}  // namespace rnicd::service
