#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/core/request/node.h"
#include "daemon/core/session/session.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/rate_limiter.h"
#include "daemon/core/tenant/tenant.h"

namespace rnicd::gate {

// The identity of one connection: its caller, its tenant, and the session it carries. The service objects of the
// connection's own server hold it, so that identity is known by construction and never looked up.
// Lifetime: from accept until its server is destroyed.
// Threads: safe.
class ConnectionContext {
 public:
  // `node` and `registry` outlive the context.
  ConnectionContext(core::Caller caller, core::Node& node, core::SessionRegistry& registry);

  const core::Caller& caller() const { return caller_; }
  // Tenant of the calls that come before a session, as the policy decided when the connection was made; empty for
  // callers that need a grant to open a session, and for operators.
  std::string_view tenant() const { return tenant_ == nullptr ? std::string_view() : tenant_->name(); }
  // Null where the tenant's name is empty.
  std::shared_ptr<const core::Workload> workload() const { return tenant_ == nullptr ? nullptr : tenant_->workload(); }
  // Counts a refused call that came before a session, for the connection's tenant.
  void CountRefusal(const absl::Status& status) const;
  // Null when the connection carries no session, or one that has ended.
  std::shared_ptr<core::Session> session() const;

  // The error of a call that needs a session: SESSION_REQUIRED, with the cause if the connection's session has ended.
  absl::Status NoSession() const;

  // `grant` is the secret of a grant, or empty. Errors: SESSION_ALREADY_OPEN, and those of SessionRegistry::Open and
  // Join.
  absl::StatusOr<std::shared_ptr<core::Session>> OpenSession(const std::string& label, std::string_view grant);
  absl::StatusOr<std::shared_ptr<core::Session>> JoinSession(SessionId id);
  // The connection has closed; its session may end with it. Later opens and joins are refused.
  void Disconnected();

  // Counts a call against the rates of the session, or without one against the tenant's; a caller without a tenant has
  // a small rate for each connection. If refused, `wait` is the time until a call would pass. Errors: RATE_LIMITED.
  absl::Status CountCall(core::Session* session, std::chrono::nanoseconds* wait);

  // Marks the begin or the end of a call of this connection.
  void CallBegan() { active_calls_.fetch_add(1); }
  void CallEnded();
  // True when the connection carries no session and no call, and has been idle since `since`.
  bool SilentSince(Instant since) const;

 private:
  bool HasSession() const RNICD_REQUIRES(mutex_);
  absl::Status CheckFree() const RNICD_REQUIRES(mutex_);

  const core::Caller caller_;
  core::SessionRegistry& registry_;
  const Clock& clock_;
  const std::shared_ptr<core::Tenant> tenant_;
  // Rate limit of callers without a tenant.
  core::RateLimiter rate_;
  std::atomic<uint64_t> active_calls_{0};
  std::atomic<Instant> last_call_;

  mutable Mutex mutex_;
  std::shared_ptr<core::Session> session_ RNICD_GUARDED_BY(mutex_);
  bool disconnected_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::gate
