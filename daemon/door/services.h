#pragma once

#include "daemon/core/request/node.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/door/bulkhead.h"
#include "daemon/door/connection_server.h"
#include "log/logger.h"

namespace rnicd::door {

// What a front door serves with. All outlive it.
struct Services {
  core::Node& node;
  core::SessionRegistry& registry;
  const log::Logger& logger;
  Bulkhead& bulkhead;
  ConnectionServer& server;
};

}  // namespace rnicd::door
