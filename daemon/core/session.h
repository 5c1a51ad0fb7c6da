#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/post_outcome.h"
#include "base/ndk/work_request.h"
#include "base/strong_id.h"
#include "daemon/core/caller.h"
#include "daemon/core/event_queue.h"
#include "daemon/core/holdings.h"
#include "daemon/core/ledger.h"
#include "daemon/core/node.h"
#include "daemon/core/rate_limiter.h"
#include "daemon/core/session_adapters.h"
#include "daemon/core/session_domains.h"
#include "daemon/core/session_guard.h"
#include "daemon/core/session_mappings.h"
#include "daemon/core/session_memory.h"
#include "daemon/core/session_pairs.h"
#include "daemon/core/session_queues.h"
#include "daemon/core/session_regions.h"
#include "daemon/core/session_requests.h"
#include "daemon/core/session_rings.h"
#include "daemon/core/session_window.h"
#include "daemon/core/tenant.h"

namespace rnicd::core {

// One client process's lease on everything it owns: who owns it, its limits and rates, its events, and its life. The
// objects are in a class for each kind, which only a SessionGuard leads to.
// Lifetime: shared by its connections, the registry and running requests. Ends once: when it is closed, when its
// process exits, when its last connection closes; LIFETIMES.md gives the order of destruction.
// Threads:  safe.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `charge` counts the session itself for its tenant.
  Session(Node& node, SessionId id, Caller owner, std::string label, Charge charge, std::shared_ptr<Tenant> tenant);

  // Counts a call against the rates of the session and its tenant. If refused, `wait` is the time until a call would
  // pass.
  // Errors: RATE_LIMITED.
  absl::Status AdmitCall(std::chrono::nanoseconds* wait);

  // Begins a request, which delays the end until it is complete. Errors: SESSION_ENDING.
  absl::StatusOr<SessionGuard> Begin();

  // Ends the session: refuses new requests, waits for running ones, reclaims everything on a reaper, then calls
  // `on_ended`. Only the first cause counts; every `on_ended` is called. May be called from any thread, at any time.
  void End(EndCause cause, std::function<void(const Reclaimed&)> on_ended);

  SessionId id() const { return id_; }
  const Caller& owner() const { return owner_; }
  const std::string& label() const { return label_; }
  Instant opened() const { return opened_; }
  const Tenant& tenant() const { return *tenant_; }
  const Ledger& ledger() const { return *ledger_; }
  EventQueue& events() { return events_; }
  bool ending() const;
  // True when everything has been reclaimed; only this object remains of the session.
  bool ended() const;
  // Cause of the end; meaningless before `ended`.
  EndCause end_cause() const;
  std::vector<std::pair<MemoryRegionId, RegionView>> ViewRegions() const;
  void AddTo(Holdings& holdings) const;

 private:
  friend class SessionGuard;

  void EndGuard();
  void TearDown();
  Reclaimed Reclaim(EndCause cause);

  Node& node_;
  const SessionId id_;
  const Caller owner_;
  const std::string label_;
  const Instant opened_;
  const std::shared_ptr<Tenant> tenant_;
  Charge charge_;
  const std::shared_ptr<Ledger> ledger_;
  RateLimiter rate_;
  EventQueue events_;

  SessionRequests requests_;
  SessionAdapters adapters_;
  SessionDomains domains_;
  SessionMemory memory_;
  SessionRegions regions_;
  SessionMappings mappings_;
  SessionQueues queues_;
  SessionWindows windows_;
  SessionPairs pairs_;
  SessionRings rings_;

  mutable Mutex life_mutex_;
  uint64_t running_ RNICD_GUARDED_BY(life_mutex_) = 0;
  bool ending_ RNICD_GUARDED_BY(life_mutex_) = false;
  bool ended_ RNICD_GUARDED_BY(life_mutex_) = false;
  EndCause cause_ RNICD_GUARDED_BY(life_mutex_) = EndCause::kClosed;
  Reclaimed reclaimed_ RNICD_GUARDED_BY(life_mutex_);
  std::vector<std::function<void(const Reclaimed&)>> on_ended_ RNICD_GUARDED_BY(life_mutex_);
};

}  // namespace rnicd::core
