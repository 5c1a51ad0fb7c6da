#include "daemon/gate/gate.h"

#include "base/status.h"

namespace rnicd::gate {
namespace {

// Our faults are errors; a caller's mistakes are not worth an operator's attention.
bool IsOurFault(const absl::Status& status) { return status.code() == absl::StatusCode::kInternal; }

}  // namespace

Call::Call(const GateServices& services, std::shared_ptr<ConnectionContext> connection, const MethodRow& row,
           Shape shape)
    : services_(services),
      connection_(std::move(connection)),
      row_(row),
      shape_(shape),
      started_(services.clock.Now()) {
  connection_->CallBegan();
}

Call::~Call() {
  Finish(MakeError(ErrorReason::INTERNAL_FAULT));
  connection_->CallEnded();
}

void Call::EndWith(Finisher finisher) {
  MutexLock lock(mutex_);
  finisher_ = std::move(finisher);
}

absl::StatusOr<std::optional<core::Session::Guard>> Call::Admit() {
  if (!row_.Allows(connection_->caller().role)) {
    return MakeError(ErrorReason::METHOD_NOT_PERMITTED);
  }
  if (row_.needs == Needs::kNoSession) {
    return std::nullopt;
  }
  session_ = connection_->session();
  if (session_ == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(core::Session::Guard guard, session_->Begin());
  return std::optional<core::Session::Guard>(std::move(guard));
}

bool Call::Finish(const absl::Status& status, const Fill& fill) {
  Finisher finisher;
  {
    MutexLock lock(mutex_);
    if (finisher_ == nullptr) {
      return false;
    }
    if (fill != nullptr) {
      fill();
    }
    finisher = std::exchange(finisher_, nullptr);
  }
  Report(status);
  finisher(status);
  return true;
}

void Call::WhileLive(const Fill& fill) {
  MutexLock lock(mutex_);
  if (finisher_ != nullptr) {
    fill();
  }
}

void Call::Report(const absl::Status& status) {
  services_.observer.OnRpc(row_.name, status.code(),
                           shape_ == Shape::kUnary ? std::optional(services_.clock.Now() - started_) : std::nullopt);
  const core::Caller& caller = connection_->caller();
  if (status.ok()) {
    if (row_.audit == Audit::kLogged) {
      services_.logger.Info("call", {{"method", row_.name}, {"pid", caller.pid}, {"uid", caller.uid}});
    }
    return;
  }
  if (absl::IsCancelled(status)) {
    return;
  }
  const ErrorInfo info = ErrorInfoOf(status);
  const std::initializer_list<log::Field> fields = {{"method", row_.name},
                                                    {"reason", RowOf(info.reason).name},
                                                    {"field", info.field},
                                                    {"pid", caller.pid},
                                                    {"uid", caller.uid}};
  if (IsOurFault(status)) {
    services_.logger.Error("call failed", fields);
  } else {
    services_.logger.Debug("call refused", fields);
  }
}

}  // namespace rnicd::gate
