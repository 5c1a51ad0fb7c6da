#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/core/request/event_queue.h"
#include "daemon/core/request/lease.h"
#include "daemon/core/request/maybe_pending.h"
#include "daemon/core/request/node.h"
#include "daemon/core/request/session_guard.h"
#include "daemon/core/tenant/ledger.h"

namespace rnicd::core {

// How the caller of a request that may pend wants its outcome.
struct PendingChoice {
  // Return at once and report on the event stream; otherwise `done` is called.
  bool to_events = false;
  uint64_t request_context = 0;
};

// Shared by the requests of a session, whatever object they name: the workers, and the report of an outcome that comes
// later.
// Lifetime: a part of its session.
// Threads:  safe.
class SessionRequests {
 public:
  // Both outlive the requests.
  SessionRequests(Lease& lease, Node& node) : lease_(lease), node_(node) {}

  Lease& lease() const { return lease_; }
  Node& node() const { return node_; }

  // Errors: DAEMON_DRAINING.
  absl::Status CheckNotDraining() const;
  bool IsSlow(uint64_t bytes) const { return bytes >= node_.limits.pending_threshold_bytes; }
  absl::StatusOr<std::shared_ptr<Charge>> TakeOne(Resource resource) const;

  // Returns the callback that reports the outcome of a request that pends. `charge` is kept until the outcome was
  // reported and fetched.
  template <typename T>
  Done<T> Report(RequestKind kind, uint64_t object_id, PendingChoice choice, std::shared_ptr<Charge> charge,
                 const Done<T>& done);

  // Work for a worker. Called once: with ok, or with SESSION_ENDING if the session has ended before the work began; it
  // then undoes what its request has begun, and reports that status.
  using Job = std::function<void(const absl::Status& start)>;
  // Queues the job with the session held.
  void RunOnWorker(Job job);
  void RunHeld(Executor& executor, const std::shared_ptr<SessionGuard>& held, Job job);
  // Cancels the queued jobs of the session, which is ending.
  void CancelQueued();

 private:
  JobOwner job_owner() const;

  Lease& lease_;
  Node& node_;
};

}  // namespace rnicd::core
