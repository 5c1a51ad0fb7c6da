#pragma once

#include "daemon/core/request/node.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/gate/method.h"
#include "daemon/health/health_board.h"
#include "daemon/service/admin/admin_process.h"

namespace rnicd::service {

// Every method that the daemon serves. The arguments outlive it.
gate::MethodIndex AllMethods(core::Node& node, core::SessionRegistry& registry, ProcessControl& process,
                             health::HealthBoard& health);

}  // namespace rnicd::service
