#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/core/memory_pool.h"
#include "daemon/core/node.h"
#include "daemon/core/pool_refiller.h"
#include "daemon/rings/spin_options.h"
#include "daemon/sandbox/sandbox.h"
#include "daemon/transport/front_door.h"
#include "log/logger.h"
#include "provider/soft/soft_provider.h"
#include "provider/verbs/verbs_options.h"

namespace rnicd::app {

// The daemon's configuration, validated.
struct Config {
  std::string socket_dir;
  std::string admin_socket_dir;
  std::string provider;
  // Address of the metrics page, host:port; empty for no page.
  std::string metrics_address;
  // Number of tenants that the metrics page names; the others are one, called "other".
  uint32_t metrics_max_tenants = 100;
  bool status_page = true;
  // Path of the policy file; empty: each uid is a tenant, with uid_limits.
  std::string policy_file;
  core::Limits uid_limits;
  // Path of the audit log; empty for none.
  std::string audit_log;
  // Bytes of the audit log that each owner may cause; 0: no limit.
  uint64_t audit_bytes_per_second = 0;
  sandbox::SandboxOptions sandbox;
  std::chrono::milliseconds drain_timeout{0};
  std::chrono::milliseconds ticket_lifetime{0};
  std::chrono::milliseconds health_interval{0};
  std::chrono::milliseconds health_timeout{0};
  uint32_t rpc_threads = 1;
  uint32_t worker_threads = 1;
  // 0: no rings.
  uint32_t ring_threads = 1;
  rings::SpinOptions ring_spin;
  // Empty: no memory is kept ready.
  std::vector<core::PoolClass> memory_pool;
  core::RefillBounds refill;
  log::Options log;
  transport::FrontDoorOptions front_door;
  core::NodeLimits limits;
  provider::SoftOptions soft;
  provider::VerbsOptions verbs;
};

// Reads the flags. Every error is reported at once: `errors` gets a line for each, and the config must then not be
// used.
Config ConfigFromFlags(std::vector<std::string>& errors);

}  // namespace rnicd::app
