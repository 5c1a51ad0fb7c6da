#pragma once

#include <vector>

#include "daemon/app/host/system_door.h"
#include "daemon/core/request/alarms.h"
#include "daemon/core/request/worker_pool.h"
#include "daemon/health/serving_check.h"
#include "daemon/rings/ring_threads.h"
#include "daemon/rpc/server.h"

namespace rnicd::app {

// What the parts are made from. All outlive the check.
struct ServingThreads {
  SystemDoor& door;
  const rpc::Server& workloads;
  const rpc::Server& operators;
  core::Executor& fd_workers;
  core::Alarms& alarms;
  // Null without rings.
  rings::RingThreads* rings;
};

// The threads that serve the requests of workloads and operators, and that nobody may block: the README of
// daemon/health says which are left out.
std::vector<health::ServingPart> ServingParts(const ServingThreads& threads);

}  // namespace rnicd::app
