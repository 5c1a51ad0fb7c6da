#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "daemon/core/request/node.h"
#include "daemon/core/session/session.h"
#include "daemon/core/tenant/caller.h"

namespace rnicd::core {

// All sessions of the node.
// Threads: safe. Its lock is taken only to open, find, list and end sessions, never by a registration.
class SessionRegistry {
 public:
  // `node` outlives the registry.
  explicit SessionRegistry(Node& node) : node_(node) {}

  // `grant` is the secret of a grant, or empty. Errors: QUOTA_SESSIONS, DAEMON_DRAINING, TENANT_REFUSED, GRANT_REFUSED,
  // DAEMON_HANDED_OVER, FIELD_OUT_OF_RANGE for a label that is too long or not printable.
  absl::StatusOr<std::shared_ptr<Session>> Open(const Caller& caller, const std::string& label,
                                                std::string_view grant = {});
  // Errors: SESSION_NOT_FOUND, also for a session of another process. DAEMON_HANDED_OVER when the process has no
  // session here and may have one in a newer generation of the daemon.
  absl::StatusOr<std::shared_ptr<Session>> Join(SessionId id, const Caller& caller);

  // Open and Join count the calling connection; this uncounts it. When the last one closes, the session ends.
  void DropConnection(const std::shared_ptr<Session>& session);

  // See Session::End. The session stays listed until it has ended.
  void End(const std::shared_ptr<Session>& session, EndCause cause, std::function<void(const Reclaimed&)> on_ended);
  void EndAllOf(const ProcessKey& process, EndCause cause);
  // Ends the sessions of owners that their tenant does not admit any more, and returns their number: all of a closed
  // tenant, those from outside the pod of a bound one.
  uint64_t EndRefusedBy(const Tenant& tenant, EndCause cause);
  // Ends the session and returns it. Errors: SESSION_NOT_FOUND.
  absl::StatusOr<std::shared_ptr<Session>> Evict(SessionId id);
  // Ends the sessions of expired grants, and refunds memory that no process holds any more. Must be called
  // periodically.
  void EndExpired();

  // A card was removed. Returns at once, and calls no card: for the thread that reports it.
  void OnAdapterRemoved();

  // Refuses new sessions from now on and ends the open ones.
  void Drain(EndCause cause);
  // False when sessions were still ending at the deadline.
  bool WaitUntilEmpty(Instant deadline);

  // From now on a newer generation of the daemon opens sessions, and this one refuses to. Returns the processes that
  // have some here. `on_gone` is called for each of them once, when the last of its sessions has ended; on any thread,
  // also before this has returned, and it must not block.
  std::vector<ProcessKey> HandOver(std::function<void(const ProcessKey&)> on_gone);
  // As before HandOver. A call of `on_gone` may still be in progress.
  void TakeBack();
  // Whether the process has a session here, since HandOver.
  bool Holds(const ProcessKey& process) const;

  struct Listed {
    std::shared_ptr<Session> session;
    uint32_t connections = 0;
  };
  // All sessions, in the order of their ids.
  std::vector<Listed> List() const;

 private:
  struct Entry {
    std::shared_ptr<Session> session;
    uint32_t connections = 0;
  };

  // Sessions of each process, when a newer generation of the daemon opens new ones.
  struct HandedOver {
    std::map<ProcessKey, uint64_t> sessions;
    std::function<void(const ProcessKey&)> on_gone;
  };

  void Forget(SessionId id);
  // Whether this was the process's last session.
  bool IsGone(const ProcessKey& process) RNICD_REQUIRES(mutex_);

  Node& node_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::map<SessionId, Entry> sessions_ RNICD_GUARDED_BY(mutex_);
  // True since Drain; an operator cannot undo it.
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::optional<HandedOver> handed_over_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
