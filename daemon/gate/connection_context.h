#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/core/caller.h"
#include "daemon/core/session.h"
#include "daemon/core/session_registry.h"

namespace rnicd::gate {

// What one connection is to its handlers: who calls, and which session it carries. The service objects of a
// connection's own server hold it, so that identity is known by construction and never looked up.
// Lifetime: from accept until its server is gone. Threads: safe.
class ConnectionContext {
 public:
  // `registry` and `clock` outlive the context.
  ConnectionContext(core::Caller caller, core::SessionRegistry& registry, const Clock& clock);

  const core::Caller& caller() const { return caller_; }
  // Null when the connection carries none, or one that has ended.
  std::shared_ptr<core::Session> session() const;

  // Errors: SESSION_ALREADY_OPEN, and those of SessionRegistry::Open and Join.
  absl::StatusOr<std::shared_ptr<core::Session>> OpenSession(const std::string& label);
  absl::StatusOr<std::shared_ptr<core::Session>> JoinSession(SessionId id);
  // The connection is gone; its session may end with it. Later opens and joins are refused.
  void Disconnected();

  // A call of this connection began or ended.
  void CallBegan() { active_calls_.fetch_add(1); }
  void CallEnded();
  // True when the connection carries no session, no call, and has been so since `since`.
  bool SilentSince(Instant since) const;

 private:
  bool HasSession() const RNICD_REQUIRES(mutex_);
  absl::Status CheckFree() const RNICD_REQUIRES(mutex_);

  const core::Caller caller_;
  core::SessionRegistry& registry_;
  const Clock& clock_;
  std::atomic<uint64_t> active_calls_{0};
  std::atomic<Instant> last_call_;

  mutable Mutex mutex_;
  std::shared_ptr<core::Session> session_ RNICD_GUARDED_BY(mutex_);
  bool disconnected_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::gate
