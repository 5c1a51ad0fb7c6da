#pragma once

#include <vector>

#include "daemon/core/request/node.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/gate/method.h"
#include "daemon/service/admin/admin_process.h"

namespace rnicd::service {

// The operator's side: see admin_service.proto. The arguments outlive the methods.
std::vector<gate::Method> AdminMethods(core::Node& node, core::SessionRegistry& registry, ProcessControl& process);

}  // namespace rnicd::service
