#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/secrets/random.h"
#include "base/system/os.h"
#include "daemon/core/request/alarms.h"
#include "daemon/core/request/blocking_executor.h"
#include "daemon/core/request/worker_pool.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/core/tenant/tenant_directory.h"
#include "provider/api/device.h"

namespace rnicd::core {

class AddressBook;
class LingeringMemory;
class MemoryPool;
class RingHost;
class TicketTable;

// Limits on what each owner may hold, and the duration from which a request counts as slow.
struct NodeLimits {
  Limits node;
  // Limits of a session where its tenant sets none.
  Limits session;
  // A registration or deregistration of at least this many bytes runs on a worker, and pends where that is allowed.
  uint64_t pending_threshold_bytes = uint64_t{16} << 20;
  // The longest that a request of a connector waits for its peer.
  std::chrono::milliseconds connection_timeout{30'000};
  // Time in which the owners of a removed card close what they have on it themselves.
  std::chrono::milliseconds removal_grace{5'000};
};

// The dependencies of core. Wired once in app/; everything outlives every session.
struct Node {
  Os& os;
  const Clock& clock;
  RandomSource& random;
  provider::Provider& provider;
  Observer& observer;
  // Runs what takes long: large registrations, closes and releases.
  Executor& workers;
  // Populates memory, in pieces. Its threads have the lowest priority, so it runs nothing that holds a lock for long.
  Executor& populators;
  // Runs the packets of fd.sock, which are quick, so that they never wait for these.
  Executor& fd_workers;
  // Runs the reclaim of sessions; separate from workers, so that slow registrations never delay a reclaim.
  Executor& reapers;
  // Runs the system calls that a client can block.
  BlockingExecutor& blocking;
  // Ends requests that wait for a limited time.
  Alarms& alarms;
  TicketTable& tickets;
  LingeringMemory& lingering;
  TenantDirectory& tenants;
  AddressBook& addresses;
  // While true, new sessions, memory and registrations are refused.
  std::atomic<bool>& draining;
  NodeLimits limits;
  std::shared_ptr<Ledger> ledger;
  Instant started;
  // Null where the daemon serves no rings.
  RingHost* rings = nullptr;
  // Null where the daemon keeps no memory ready.
  MemoryPool* pool = nullptr;
  // Threads of `populators` that one allocation may use; at least 1.
  uint32_t populating_threads = 1;
  // Threads of `workers` that the registrations of one request may use; at least 1.
  uint32_t registering_threads = 1;
};

}  // namespace rnicd::core
