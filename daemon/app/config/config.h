#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/secrets/random.h"
#include "daemon/core/memory/memory_pool.h"
#include "daemon/core/memory/pool_refiller.h"
#include "daemon/core/request/node.h"
#include "daemon/door/entrance.h"
#include "daemon/rings/spin_options.h"
#include "log/logger.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::app {

struct Config;

// Defined by the header for each system, system_config_*.h.
struct SystemConfig;

// A kind of hardware that a daemon can own.
struct ProviderKind {
  // Value of --provider.
  std::string_view name;
  absl::StatusOr<std::unique_ptr<provider::Provider>> (*make)(const Config& config, RandomSource& random,
                                                              provider::AdapterEventListener on_event);
};

// The cards that this system has. A new provider is a new line there. They live as long as the program.
std::span<const ProviderKind> SystemCards();

// The daemon's configuration, validated.
struct Config {
  std::string provider;
  // Kinds of cards, beside the one in software, of which --provider names one.
  std::span<const ProviderKind> cards;
  // Address of the metrics page, host:port; empty for no page.
  std::string metrics_address;
  // Number of tenants that the metrics page names; the others are one, called "other".
  uint32_t metrics_max_tenants = 100;
  bool status_page = true;
  // Path of the policy file; empty: the default policy.
  std::string policy_file;
  // The program prints the default policy and does nothing else.
  bool print_default_policy = false;
  // Path of the audit log; empty for none.
  std::string audit_log;
  // Bytes of the audit log that each owner may cause; 0: no limit.
  uint64_t audit_bytes_per_second = 0;
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
  door::ConnectionLimits connections;
  core::NodeLimits limits;
  // Null, or whether registrations wait now, those of the health probe too.
  std::function<bool()> hold_registrations;
  provider::SoftOptions soft;
  // Never null.
  std::shared_ptr<SystemConfig> system;
};

// Reads the flags, for a daemon that can own these cards. Every error is reported at once: `errors` gets a line for
// each, and the config must then not be used.
Config ConfigFromFlags(std::span<const ProviderKind> cards, std::vector<std::string>& errors);

}  // namespace rnicd::app
