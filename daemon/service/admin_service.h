#pragma once

#include <memory>

#include "daemon/core/node.h"
#include "daemon/core/session_registry.h"
#include "daemon/gate/gate.h"
#include "daemon/service/admin_process.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace rnicd::service {

// The operator's side: see admin_service.proto. One per connection; all but the gate outlive it. Threads: safe.
std::unique_ptr<grpc::Service> MakeAdminService(gate::Gate gate, core::Node& node, core::SessionRegistry& registry,
                                                ProcessControl& process);

}  // namespace rnicd::service
