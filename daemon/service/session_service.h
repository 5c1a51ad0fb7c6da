#pragma once

#include <memory>

#include "daemon/core/session_registry.h"
#include "daemon/gate/gate.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace rnicd::service {

// Sessions and their events: see session_service.proto. One per connection; `registry` outlives it. Threads: safe.
std::unique_ptr<grpc::Service> MakeSessionService(gate::Gate gate, core::SessionRegistry& registry);

}  // namespace rnicd::service
