#pragma once

#include <vector>

#include "daemon/core/session/session_registry.h"
#include "daemon/gate/method.h"

namespace rnicd::service {

// Sessions and their events: see session_service.proto. `registry` outlives the methods.
std::vector<gate::Method> SessionMethods(core::SessionRegistry& registry);

}  // namespace rnicd::service
