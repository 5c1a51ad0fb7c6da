#pragma once

#include <vector>

#include "daemon/core/session/session_registry.h"
#include "daemon/gate/method.h"
#include "daemon/health/health_board.h"
#include "provider/api/device.h"

// The methods of each service; those of memory and of operators are in rooms of their own. What they are given outlives
// them, and their streams.
namespace rnicd::service {

// See session_service.proto.
std::vector<gate::Method> SessionMethods(core::SessionRegistry& registry);
// See adapter_service.proto.
std::vector<gate::Method> AdapterMethods(provider::Provider& provider);
// See queue_service.proto.
std::vector<gate::Method> QueueMethods();
// See connection_service.proto.
std::vector<gate::Method> ConnectionMethods();
// See ring_service.proto.
std::vector<gate::Method> RingMethods();
// See health.proto.
std::vector<gate::Method> HealthMethods(health::HealthBoard& board);

}  // namespace rnicd::service
