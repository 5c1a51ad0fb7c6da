#include "daemon/gate/call.h"

#include <algorithm>

#include "base/status.h"
#include "daemon/gate/named_objects.h"

namespace rnicd::gate {
namespace {

// Bounds of the delay before a client that calls too often gets its refusal, whatever its rate: long enough that a
// client's retry loop costs little, and short enough to delay nothing else.
constexpr std::chrono::milliseconds kLatenessMin{10};
constexpr std::chrono::milliseconds kLatenessMax{1000};

// Internal faults are logged as errors; a caller's mistakes do not need an operator's attention.
bool IsInternalFault(const absl::Status& status) { return status.code() == absl::StatusCode::kInternal; }

}  // namespace

Call::Call(const GateServices& services, std::shared_ptr<ConnectionContext> connection, const core::Operation& row,
           Shape shape, std::unique_ptr<Message> response, std::shared_ptr<ClientEnd> end)
    : services_(services),
      connection_(std::move(connection)),
      row_(row),
      shape_(shape),
      end_(std::move(end)),
      started_(services.clock.Now()),
      response_(std::move(response)) {
  connection_->CallBegan();
}

Call::~Call() {
  bool dropped = false;
  {
    MutexLock lock(mutex_);
    dropped = !ended_;
  }
  // Most calls have ended, and an error is worth several allocations.
  if (dropped) {
    Finish(MakeError(ErrorReason::INTERNAL_FAULT));
  }
  connection_->CallEnded();
}

absl::Status Call::CountAgainstRate(std::chrono::nanoseconds* wait) {
  if (connection_->caller().role != core::Role::kWorkload) {
    return absl::OkStatus();
  }
  const std::shared_ptr<core::Session> session = connection_->session();
  const bool is_free = row_.pace == core::Pace::kFreeInSession && session != nullptr;
  return is_free ? absl::OkStatus() : connection_->CountCall(session.get(), wait);
}

absl::StatusOr<std::optional<core::SessionGuard>> Call::Admit() {
  if (!row_.Allows(connection_->caller().role)) {
    return MakeError(ErrorReason::METHOD_NOT_PERMITTED);
  }
  if (row_.needs == core::Needs::kNoSession) {
    return std::nullopt;
  }
  std::shared_ptr<core::Session> session = connection_->session();
  if (session == nullptr) {
    return connection_->NoSession();
  }
  session_ = std::move(session);
  RNICD_ASSIGN_OR_RETURN(core::SessionGuard guard, session_->Begin());
  return std::optional<core::SessionGuard>(std::move(guard));
}

void Call::FinishLater(std::chrono::nanoseconds wait, const absl::Status& status) {
  const std::chrono::nanoseconds lateness = std::clamp<std::chrono::nanoseconds>(wait, kLatenessMin, kLatenessMax);
  end_->CallLater(lateness, [call = shared_from_this(), status] { call->Finish(status); });
}

const Call::Message* Call::TakeRequest(std::unique_ptr<Message> request) {
  MutexLock lock(mutex_);
  request_ = std::move(request);
  return request_.get();
}

bool Call::Finish(const absl::Status& status, const Fill& fill) {
  const Message* request = nullptr;
  const Message* response = nullptr;
  std::function<void()> on_end;
  // Destroyed without the lock.
  std::function<void()> on_cancel;
  std::string note;
  {
    MutexLock lock(mutex_);
    if (ended_) {
      return false;
    }
    if (fill != nullptr) {
      fill();
    }
    // The messages are not written any more from here on.
    ended_ = true;
    request = request_.get();
    response = status.ok() ? response_.get() : nullptr;
    on_end = std::exchange(on_end_, nullptr);
    on_cancel = std::exchange(on_cancel_, nullptr);
    note = std::move(note_);
  }
  Report(status, request, response, note);
  end_->Finish(status, response);
  if (on_end != nullptr) {
    on_end();
  }
  return true;
}

void Call::OnCancel(std::function<void()> hook) {
  {
    MutexLock lock(mutex_);
    if (!ended_) {
      on_cancel_ = std::move(hook);
      return;
    }
  }
  hook();
}

void Call::Cancel() {
  std::function<void()> on_cancel;
  {
    MutexLock lock(mutex_);
    on_cancel = std::exchange(on_cancel_, nullptr);
  }
  Finish(absl::CancelledError());
  if (on_cancel != nullptr) {
    on_cancel();
  }
}

void Call::WhileLive(const Fill& fill) {
  MutexLock lock(mutex_);
  if (!ended_) {
    fill();
  }
}

void Call::SetOnEnd(std::function<void()> on_end) {
  {
    MutexLock lock(mutex_);
    if (!ended_) {
      on_end_ = std::move(on_end);
      return;
    }
  }
  on_end();
}

void Call::SetNote(std::string note) {
  MutexLock lock(mutex_);
  note_ = std::move(note);
}

bool Call::IsDecision(const absl::Status& status) const {
  return status.ok() ? row_.audit == core::Audit::kDecision : !absl::IsCancelled(status);
}

void Call::CountRefusal(const absl::Status& status, const core::Session* session) const {
  if (status.ok()) {
    return;
  }
  if (session != nullptr) {
    session->tenant().tally()->CountRefusal(status);
  } else {
    connection_->CountRefusal(status);
  }
}

void Call::Report(const absl::Status& status, const Message* request, const Message* response,
                  const std::string& note) {
  const bool is_measured = shape_ == Shape::kUnary && is_measured_.load();
  services_.observer.Report(
      core::RpcEnded{.method = row_.name,
                     .code = status.code(),
                     .duration = is_measured ? std::optional(services_.clock.Now() - started_) : std::nullopt});
  // Most calls succeed, and to name their objects costs more than the rest of the gate.
  if (IsDecision(status) && (!status.ok() || services_.observer.HeedsSuccesses())) {
    ReportDecision(status, NamedObjects(request, response), note);
  }
  if (status.ok() || absl::IsCancelled(status)) {
    return;
  }
  const core::Caller& caller = connection_->caller();
  const ErrorInfo info = ErrorInfoOf(status);
  const std::initializer_list<log::Field> fields = {{"method", row_.name},
                                                    {"reason", RowOf(info.reason).name},
                                                    {"field", info.field},
                                                    {"pid", caller.pid},
                                                    {"uid", caller.uid}};
  if (IsInternalFault(status)) {
    services_.logger.Error("call failed", fields);
  } else {
    services_.logger.Debug("call refused", fields);
  }
}

void Call::ReportDecision(const absl::Status& status, std::string object, const std::string& note) {
  // An opened or joined session belongs to the connection, not to the call.
  const std::shared_ptr<core::Session> session = session_ != nullptr ? session_ : connection_->session();
  CountRefusal(status, session.get());
  services_.observer.Report(
      core::Decision{.what = row_.name,
                     .caller = &connection_->caller(),
                     .tenant = session != nullptr ? session->tenant().name() : connection_->tenant(),
                     .workload = session != nullptr ? session->tenant().workload() : connection_->workload(),
                     .session = session != nullptr ? session->id() : SessionId{},
                     .object = std::move(object),
                     .status = status,
                     .note = note});
}

}  // namespace rnicd::gate
