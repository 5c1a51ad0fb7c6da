#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/core/request/node.h"
#include "daemon/core/request/older_generation.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/status_page/history.h"
#include "daemon/status_page/recent_failures.h"

namespace rnicd::status_page {

struct AdapterState {
  std::string name;
  bool healthy = false;
  // Why the adapter is not healthy, or another remark; may be empty.
  std::string remark;
};

// Facts on the page that core does not have.
struct Facts {
  // The machine's name.
  std::string node_name;
  std::string version;
  // Path of the policy file; empty without one.
  std::string policy_file;
  // Number of connections. Called from the threads that serve the page.
  std::function<uint64_t()> connections;
  std::function<std::vector<AdapterState>()> adapters;
  // Those that still serve sessions. Called like the others.
  std::function<std::vector<core::OlderGeneration>()> older_generations = [] {
    return std::vector<core::OlderGeneration>();
  };
};

// The contents of the status page, as JSON. Objects only as far as an operator needs to see the holdings of each
// tenant: no token, no ticket, no secret, and no address of memory, because an address and a token are all that a peer
// needs.
// Lifetime: all its arguments outlive it.
// Threads: safe.
class StatusPage {
 public:
  static constexpr size_t kSessionsMost = 200;
  static constexpr size_t kTenantsMost = 200;
  // Limit on the regions shown, for all sessions together.
  static constexpr size_t kRegionsMost = 500;
  // Limit on the listeners and connectors shown, together.
  static constexpr size_t kEndsMost = 500;
  // Lifetime of a response: all requests within this time get the same one, so that frequent requests cost nothing.
  static constexpr std::chrono::milliseconds kFresh{500};

  StatusPage(const core::Node& node, const core::SessionRegistry& registry, const RecentFailures& failures,
             const History& history, Facts facts);

  // The whole page. Rebuilt when the last one is older than kFresh; `wall` is the time shown.
  std::string Json(WallTime wall);

 private:
  std::string Make(WallTime wall) const;

  const core::Node& node_;
  const core::SessionRegistry& registry_;
  const RecentFailures& failures_;
  const History& history_;
  const Facts facts_;
  Mutex mutex_;
  std::string made_ RNICD_GUARDED_BY(mutex_);
  Instant made_at_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::status_page
