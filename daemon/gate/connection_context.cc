#include "daemon/gate/connection_context.h"

#include <string>
#include <utility>

#include "base/status.h"
#include "daemon/core/tenant/observation.h"

namespace rnicd::gate {
namespace {

// Calls per second for a connection whose process the policy refuses: enough to present a grant.
constexpr uint64_t kCallsWithoutTenant = 50;

std::shared_ptr<core::Tenant> TenantOf(const core::Caller& caller, core::TenantDirectory& tenants) {
  return caller.role == core::Role::kWorkload ? tenants.TenantOf(caller, "").value_or(nullptr) : nullptr;
}

}  // namespace

ConnectionContext::ConnectionContext(core::Caller caller, core::Node& node, core::SessionRegistry& registry)
    : caller_(std::move(caller)),
      registry_(registry),
      clock_(node.clock),
      tenant_(TenantOf(caller_, node.tenants)),
      rate_(node.clock, core::Rate{.per_second = kCallsWithoutTenant}),
      last_call_(node.clock.Now()) {}

std::shared_ptr<core::Session> ConnectionContext::session() const {
  MutexLock lock(mutex_);
  return HasSession() ? session_ : nullptr;
}

bool ConnectionContext::HasSession() const { return session_ != nullptr && !session_->ended(); }

absl::Status ConnectionContext::NoSession() const {
  MutexLock lock(mutex_);
  if (session_ == nullptr || !session_->ended()) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  return MakeErrorWithDetail(ErrorReason::SESSION_REQUIRED,
                             "its session ended: " + std::string(core::EndCauseName(session_->end_cause())));
}

absl::Status ConnectionContext::CheckFree() const {
  if (disconnected_) {
    return MakeError(ErrorReason::SESSION_ENDING);
  }
  return HasSession() ? MakeError(ErrorReason::SESSION_ALREADY_OPEN) : absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<core::Session>> ConnectionContext::OpenSession(const std::string& label,
                                                                              std::string_view grant) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckFree());
  RNICD_ASSIGN_OR_RETURN(session_, registry_.Open(caller_, label, grant));
  return session_;
}

absl::StatusOr<std::shared_ptr<core::Session>> ConnectionContext::JoinSession(SessionId id) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckFree());
  RNICD_ASSIGN_OR_RETURN(session_, registry_.Join(id, caller_));
  return session_;
}

void ConnectionContext::Disconnected() {
  std::shared_ptr<core::Session> session;
  {
    MutexLock lock(mutex_);
    disconnected_ = true;
    session = std::move(session_);
  }
  if (session != nullptr) {
    registry_.DropConnection(session);
  }
}

absl::Status ConnectionContext::CountCall(core::Session* session, std::chrono::nanoseconds* wait) {
  if (session != nullptr) {
    return session->AdmitCall(wait);
  }
  core::RateLimiter& rate = tenant_ != nullptr ? tenant_->rate() : rate_;
  const auto until_one_passes = rate.Take();
  if (!until_one_passes.has_value()) {
    return absl::OkStatus();
  }
  *wait = *until_one_passes;
  const uint64_t limit = rate.per_second();
  return MakeError(ErrorInfo{.reason = ErrorReason::RATE_LIMITED, .limit = limit, .used = limit, .requested = 1});
}

void ConnectionContext::CallEnded() {
  last_call_.store(clock_.Now());
  active_calls_.fetch_sub(1);
}

bool ConnectionContext::SilentSince(Instant since) const {
  return active_calls_.load() == 0 && last_call_.load() < since && session() == nullptr;
}

void ConnectionContext::CountRefusal(const absl::Status& status) const {
  if (tenant_ != nullptr) {
    tenant_->tally()->CountRefusal(status);
  }
}

}  // namespace rnicd::gate
