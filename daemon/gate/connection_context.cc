#include "daemon/gate/connection_context.h"

#include <utility>

#include "base/status.h"

namespace rnicd::gate {

ConnectionContext::ConnectionContext(core::Caller caller, core::SessionRegistry& registry, const Clock& clock)
    : caller_(std::move(caller)), registry_(registry), clock_(clock), last_call_(clock.Now()) {}

std::shared_ptr<core::Session> ConnectionContext::session() const {
  MutexLock lock(mutex_);
  return HasSession() ? session_ : nullptr;
}

bool ConnectionContext::HasSession() const { return session_ != nullptr && !session_->ended(); }

absl::Status ConnectionContext::CheckFree() const {
  if (disconnected_) {
    return MakeError(ErrorReason::SESSION_ENDING);
  }
  return HasSession() ? MakeError(ErrorReason::SESSION_ALREADY_OPEN) : absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<core::Session>> ConnectionContext::OpenSession(const std::string& label) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(CheckFree());
  RNICD_ASSIGN_OR_RETURN(session_, registry_.Open(caller_, label));
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

void ConnectionContext::CallEnded() {
  last_call_.store(clock_.Now());
  active_calls_.fetch_sub(1);
}

bool ConnectionContext::SilentSince(Instant since) const {
  return active_calls_.load() == 0 && last_call_.load() < since && session() == nullptr;
}

}  // namespace rnicd::gate
