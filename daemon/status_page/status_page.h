#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/core/node.h"
#include "daemon/core/session_registry.h"
#include "daemon/status_page/history.h"
#include "daemon/status_page/recent_failures.h"

namespace rnicd::status_page {

struct AdapterState {
  std::string name;
  bool healthy = false;
  // Why it is not, or what else is to be said; may be empty.
  std::string remark;
};

// What the page says that core does not know.
struct Facts {
  // The machine's name.
  std::string node_name;
  std::string version;
  // Empty without one.
  std::string policy_file;
  // Called from the threads that serve the page.
  std::function<uint64_t()> connections;
  std::function<std::vector<AdapterState>()> adapters;
};

// What the status page shows, as JSON. Of the objects only what an operator needs to see who holds what: no token, no
// ticket, no secret, and no address of memory, because an address and a token are all that a peer needs.
// Lifetime: everything it is given outlives it. Threads: safe.
class StatusPage {
 public:
  static constexpr size_t kSessionsMost = 200;
  static constexpr size_t kTenantsMost = 200;
  // Of all sessions together.
  static constexpr size_t kRegionsMost = 500;
  // An answer serves everybody who asks within this time, so that asking often costs nothing.
  static constexpr std::chrono::milliseconds kFresh{500};

  StatusPage(const core::Node& node, const core::SessionRegistry& registry, const RecentFailures& failures,
             const History& history, Facts facts);

  // Everything the page shows. Made anew when the last one is older than kFresh; `wall` is the time it says.
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
