#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/os.h"
#include "base/random.h"
#include "daemon/core/ledger.h"
#include "daemon/core/observer.h"
#include "daemon/core/tenant_directory.h"
#include "daemon/core/ticket_table.h"
#include "daemon/core/worker_pool.h"
#include "provider/api/device.h"

namespace rnicd::core {

// How much each owner may hold, and when a request counts as slow.
struct NodeLimits {
  Limits node;
  // Where the session's tenant says nothing else.
  Limits session;
  // A registration or deregistration of at least so many bytes runs on a worker, and pends where that is allowed.
  uint64_t pending_threshold_bytes = uint64_t{16} << 20;
};

// What core stands on. Wired once in app/; everything outlives every session.
struct Node {
  Os& os;
  const Clock& clock;
  RandomSource& random;
  provider::Provider& provider;
  Observer& observer;
  Executor& workers;
  // Takes sessions back; apart from workers, so that slow registrations never hold up a reclaim.
  Executor& reapers;
  TicketTable& tickets;
  TenantDirectory& tenants;
  // While true, nothing is taken on: no session, no memory, no registration.
  std::atomic<bool>& draining;
  NodeLimits limits;
  std::shared_ptr<Ledger> ledger;
  Instant started;
};

}  // namespace rnicd::core
