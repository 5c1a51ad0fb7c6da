#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "daemon/core/request/event_queue.h"
#include "daemon/core/request/node.h"
#include "daemon/core/request/session_guard.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/core/tenant/rate_limiter.h"
#include "daemon/core/tenant/tenant.h"

namespace rnicd::core {

// Amounts that cost the daemon about as much time as a small request: a tenth of a millisecond. So many count as one
// more request against the rates of their session and tenant.

// Pages that are made, filled with zeros and later freed.
inline constexpr uint64_t kPopulatedBytesPerRequest = uint64_t{128} << 10;
// Pages that exist, and are pinned and unpinned.
inline constexpr uint64_t kRegisteredBytesPerRequest = uint64_t{1} << 20;

// Regions of one ProvisionMemory, apart from their bytes.
inline constexpr uint64_t kProvisionedRegionsPerRequest = 64;

// One client process's lease on everything it owns: who owns it, its limits and rates, its events, and its life. What
// it owns is a Session's, and every lease is one.
// Lifetime: shared by its connections, the registry and running requests. Ends once: when it is closed, when its
// process exits, when its last connection closes; LIFETIMES.md gives the order of destruction.
// Threads:  safe.
class Lease : public std::enable_shared_from_this<Lease> {
 public:
  virtual ~Lease() = default;

  // Counts a call against the rates of the session and its tenant. If refused, `wait` is the time until a call would
  // pass.
  // Errors: RATE_LIMITED.
  absl::Status AdmitCall(std::chrono::nanoseconds* wait);
  // Counts the cost of a request's bytes, in addition to the request itself, against the same rates.
  void CountBytes(uint64_t bytes, uint64_t per_request);

  // Begins a request, which delays the end until it is complete. Errors: SESSION_ENDING.
  absl::StatusOr<SessionGuard> Begin();
  // A second guard for a request in progress, for a part of it that continues on another thread.
  SessionGuard Hold();

  // Ends the session: refuses new requests, waits for running ones, reclaims everything on a reaper, then calls
  // `on_ended`. Only the first cause counts; every `on_ended` is called. May be called from any thread, at any time.
  void End(EndCause cause, std::function<void(const Reclaimed&)> on_ended);

  // Reports a decision about this session's requests; one that refuses is counted for the tenant. `what`, `object` and
  // `note` as in Decision.
  void ReportDecision(std::string_view what, std::string object, const absl::Status& status,
                      std::string_view note = {}) const;
  // The same without the count: a detail of a call, which is counted at its end.
  void ReportDetail(std::string_view what, std::string object, const absl::Status& status,
                    std::string_view note = {}) const;
  // False when successes need not be reported.
  bool ReportsSuccesses() const { return node_.observer.HeedsSuccesses(); }

  SessionId id() const { return id_; }
  const Caller& owner() const { return owner_; }
  const std::string& label() const { return label_; }
  Instant opened() const { return opened_; }
  const Tenant& tenant() const { return *tenant_; }
  const Ledger& ledger() const { return *ledger_; }
  // For charges.
  const std::shared_ptr<Ledger>& shared_ledger() const { return ledger_; }
  EventQueue& events() { return events_; }
  bool ending() const;
  // True when everything has been reclaimed; only this object remains of the session.
  bool ended() const;
  // Cause of the end; meaningless before `ended`.
  EndCause end_cause() const;

 protected:
  // `charge` counts the session itself for its tenant.
  Lease(Node& node, SessionId id, Caller owner, std::string label, Charge charge, std::shared_ptr<Tenant> tenant);

  Node& node() const { return node_; }

 private:
  friend class SessionGuard;

  // Ends the requests that wait, with SESSION_ENDING. Called once, on a reaper, before the last request is complete.
  virtual void CancelWaiting() = 0;
  // Reclaims everything. Called once, on a reaper, when no request is in progress any more.
  virtual Reclaimed Reclaim(EndCause cause) = 0;

  void EndGuard();
  void TearDown();

  struct Life {
    uint64_t running = 0;
    bool ending = false;
    bool ended = false;
    EndCause cause = EndCause::kClosed;
    Reclaimed reclaimed;
    std::vector<std::function<void(const Reclaimed&)>> on_ended;
  };

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

  mutable Mutex life_mutex_;
  Life life_ RNICD_GUARDED_BY(life_mutex_);
};

}  // namespace rnicd::core
