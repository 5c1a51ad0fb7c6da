#include "daemon/core/request/session_requests.h"

#include <string>
#include <string_view>

#include "base/status.h"

namespace rnicd::core {
namespace {

// Empty for requests that cannot fail once they have begun.
std::string_view LateName(RequestKind kind) {
  switch (kind) {
    case RequestKind::kRegisterMr:
      return "late.register";
    case RequestKind::kDeregisterMr:
      return "late.deregister";
    case RequestKind::kInitializeFastRegisterMr:
      return "late.initialize";
    default:
      return "";
  }
}

absl::Status StatusOf(const absl::Status& outcome) { return outcome; }
absl::Status StatusOf(const absl::StatusOr<Registration>& outcome) { return outcome.status(); }

std::optional<Registration> RegistrationOf(const absl::Status& /*outcome*/) { return std::nullopt; }
std::optional<Registration> RegistrationOf(const absl::StatusOr<Registration>& outcome) {
  return outcome.ok() ? std::optional(*outcome) : std::nullopt;
}

}  // namespace

absl::Status SessionRequests::CheckNotDraining() const {
  return node_.draining.load() ? MakeError(ErrorReason::DAEMON_DRAINING) : absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Charge>> SessionRequests::TakeOne(Resource resource) const {
  RNICD_ASSIGN_OR_RETURN(Charge charge, Charge::Take(lease_.shared_ledger(), resource, 1));
  return std::make_shared<Charge>(std::move(charge));
}

template <typename T>
Done<T> SessionRequests::Report(RequestKind kind, uint64_t object_id, PendingChoice choice,
                                std::shared_ptr<Charge> charge, const Done<T>& done) {
  if (!choice.to_events) {
    return [charge = std::move(charge), done](const Outcome<T>& outcome) {
      charge->Refund();
      done(outcome);
    };
  }
  return [self = lease_.shared_from_this(), charge = std::move(charge), kind, object_id,
          choice](const Outcome<T>& outcome) {
    // The call returned STATUS_PENDING: nothing else records its failure.
    if (!StatusOf(outcome).ok()) {
      self->ReportDecision(LateName(kind), "mr_id=" + std::to_string(object_id), StatusOf(outcome));
    }
    self->events().Push(RequestCompleted{.kind = kind,
                                         .request_context = choice.request_context,
                                         .object_id = object_id,
                                         .status = StatusOf(outcome),
                                         .registration = RegistrationOf(outcome),
                                         .charge = charge});
  };
}

template Done<> SessionRequests::Report<void>(RequestKind, uint64_t, PendingChoice, std::shared_ptr<Charge>,
                                              const Done<>&);
template Done<Registration> SessionRequests::Report<Registration>(RequestKind, uint64_t, PendingChoice,
                                                                  std::shared_ptr<Charge>, const Done<Registration>&);

// std::function requires copyable captures.
void SessionRequests::RunOnWorker(Job job) {
  RunHeld(node_.workers, std::make_shared<SessionGuard>(lease_.Hold()), std::move(job));
}

void SessionRequests::RunHeld(Executor& executor, const std::shared_ptr<SessionGuard>& held, Job job) {
  executor.Enqueue(job_owner(), [this, held, job = std::move(job)] {
    job(lease_.ending() ? MakeError(ErrorReason::SESSION_ENDING) : absl::OkStatus());
  });
  // The end of the session may have begun meanwhile, and cancelled the queue before this job was in it.
  if (lease_.ending()) {
    node_.reapers.PostFor(lease_.tenant().number(), [this, held] { CancelQueued(); });
  }
}

// On a reaper, because each job reports to its caller, and because a large region whose close was queued is closed
// here.
void SessionRequests::CancelQueued() {
  for (Executor* executor : {&node_.workers, &node_.populators}) {
    for (const std::function<void()>& job : executor->Withdraw(job_owner())) {
      job();
    }
  }
}

JobOwner SessionRequests::job_owner() const { return {.number = lease_.tenant().number(), .group = lease_.id().value}; }

}  // namespace rnicd::core
