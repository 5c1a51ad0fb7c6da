#include "daemon/core/session/session_registry.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace rnicd::core {
namespace {

constexpr size_t kMaxLabelBytes = 64;

absl::Status CheckLabel(const std::string& label) {
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (label.size() > kMaxLabelBytes || !std::all_of(label.begin(), label.end(), printable)) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "label");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<Session>> SessionRegistry::Open(const Caller& caller, const std::string& label,
                                                               std::string_view grant) {
  RNICD_RETURN_IF_ERROR(CheckLabel(label));
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Tenant> tenant, node_.tenants.TenantOf(caller, grant));
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    if (handed_over_.has_value()) {
      return MakeError(ErrorReason::DAEMON_HANDED_OVER);
    }
    // Both under the lock: a thread that drains, or closes or binds the tenant, ends every session listed after that.
    if (stopping_ || node_.draining.load()) {
      return MakeError(ErrorReason::DAEMON_DRAINING);
    }
    if (!tenant->Admits(caller.container.pod_uid)) {
      return MakeError(ErrorReason::GRANT_REFUSED, "grant");
    }
    RNICD_ASSIGN_OR_RETURN(Charge charge, Charge::Take(tenant->ledger(), Resource::kSessions, 1));
    SessionId id{node_.random.Next()};
    while (id.value == 0 || sessions_.contains(id)) {
      id.value = node_.random.Next();
    }
    session = std::make_shared<Session>(node_, id, caller, label, std::move(charge), tenant);
    sessions_[id] = Entry{session, 1};
  }
  node_.observer.Report(SessionOpened{.id = session->id(), .caller = caller});
  return session;
}

absl::StatusOr<std::shared_ptr<Session>> SessionRegistry::Join(SessionId id, const Caller& caller) {
  MutexLock lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.session->owner().process != caller.process) {
    if (handed_over_.has_value() && !handed_over_->sessions.contains(caller.process)) {
      return MakeError(ErrorReason::DAEMON_HANDED_OVER);
    }
    return MakeError(ErrorReason::SESSION_NOT_FOUND, "session_id");
  }
  ++found->second.connections;
  return found->second.session;
}

void SessionRegistry::DropConnection(const std::shared_ptr<Session>& session) {
  {
    MutexLock lock(mutex_);
    const auto found = sessions_.find(session->id());
    if (found == sessions_.end() || --found->second.connections > 0) {
      return;
    }
  }
  End(session, EndCause::kConnectionLost, nullptr);
}

void SessionRegistry::End(const std::shared_ptr<Session>& session, EndCause cause,
                          std::function<void(const Reclaimed&)> on_ended) {
  session->End(cause, [this, id = session->id(), on_ended = std::move(on_ended)](const Reclaimed& reclaimed) {
    Forget(id);
    if (on_ended != nullptr) {
      on_ended(reclaimed);
    }
  });
}

void SessionRegistry::Forget(SessionId id) {
  ProcessKey process;
  std::function<void(const ProcessKey&)> on_gone;
  {
    MutexLock lock(mutex_);
    const auto found = sessions_.find(id);
    // Each of several calls of End forgets it.
    if (found == sessions_.end()) {
      return;
    }
    process = found->second.session->owner().process;
    sessions_.erase(found);
    changed_.NotifyAll();
    if (IsGone(process)) {
      on_gone = handed_over_->on_gone;
    }
  }
  if (on_gone != nullptr) {
    on_gone(process);
  }
}

bool SessionRegistry::IsGone(const ProcessKey& process) {
  if (!handed_over_.has_value()) {
    return false;
  }
  const auto left = handed_over_->sessions.find(process);
  if (--left->second > 0) {
    return false;
  }
  handed_over_->sessions.erase(left);
  return true;
}

std::vector<ProcessKey> SessionRegistry::HandOver(std::function<void(const ProcessKey&)> on_gone) {
  std::vector<ProcessKey> processes;
  MutexLock lock(mutex_);
  handed_over_ = HandedOver{.sessions = {}, .on_gone = std::move(on_gone)};
  for (const auto& [id, entry] : sessions_) {
    if (++handed_over_->sessions[entry.session->owner().process] == 1) {
      processes.push_back(entry.session->owner().process);
    }
  }
  return processes;
}

void SessionRegistry::TakeBack() {
  // Destroyed without the lock, because what `on_gone` holds is not known here.
  std::optional<HandedOver> before;
  MutexLock lock(mutex_);
  before.swap(handed_over_);
}

bool SessionRegistry::Holds(const ProcessKey& process) const {
  MutexLock lock(mutex_);
  return handed_over_.has_value() && handed_over_->sessions.contains(process);
}

void SessionRegistry::EndAllOf(const ProcessKey& process, EndCause cause) {
  for (const Listed& listed : List()) {
    if (listed.session->owner().process == process) {
      End(listed.session, cause, nullptr);
    }
  }
}

uint64_t SessionRegistry::EndRefusedBy(const Tenant& tenant, EndCause cause) {
  uint64_t ended = 0;
  for (const Listed& listed : List()) {
    if (&listed.session->tenant() == &tenant && !tenant.Admits(listed.session->owner().container.pod_uid)) {
      End(listed.session, cause, nullptr);
      ++ended;
    }
  }
  return ended;
}

absl::StatusOr<std::shared_ptr<Session>> SessionRegistry::Evict(SessionId id) {
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) {
      return MakeError(ErrorReason::SESSION_NOT_FOUND, "session_id");
    }
    session = found->second.session;
  }
  End(session, EndCause::kEvicted, nullptr);
  return session;
}

void SessionRegistry::EndExpired() {
  node_.lingering.Sweep();
  for (const std::shared_ptr<Tenant>& tenant : node_.tenants.Sweep()) {
    node_.observer.Report(Decision{.what = "grant.expire", .tenant = tenant->name(), .workload = tenant->workload()});
    EndRefusedBy(*tenant, EndCause::kGrantExpired);
  }
}

void SessionRegistry::OnAdapterRemoved() {
  node_.reapers.Post([this] {
    for (const Listed& listed : List()) {
      listed.session->LeaveRemovedCards();
    }
  });
}

void SessionRegistry::Drain(EndCause cause) {
  node_.draining.store(true);
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  for (const Listed& listed : List()) {
    End(listed.session, cause, nullptr);
  }
}

bool SessionRegistry::WaitUntilEmpty(Instant deadline) {
  MutexLock lock(mutex_);
  while (!sessions_.empty()) {
    if (!changed_.WaitUntil(mutex_, deadline)) {
      return sessions_.empty();
    }
  }
  return true;
}

std::vector<SessionRegistry::Listed> SessionRegistry::List() const {
  std::vector<Listed> all;
  MutexLock lock(mutex_);
  all.reserve(sessions_.size());
  for (const auto& [id, entry] : sessions_) {
    all.push_back(Listed{entry.session, entry.connections});
  }
  return all;
}

}  // namespace rnicd::core
