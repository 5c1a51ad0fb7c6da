#pragma once

#include <google/protobuf/message.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/core/request/operations.h"
#include "daemon/core/session/session.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/gate/connection_context.h"
#include "log/logger.h"

namespace rnicd::gate {

// The client's end of one call: messages and errors out, on whatever wire. The gate and the services do not depend on a
// wire; their tests use an implementation of their own.
// Lifetime: shared by the call.
// Threads:  safe; SetOnWritten only while the call begins.
class ClientEnd {
 public:
  using Message = google::protobuf::Message;

  virtual ~ClientEnd() = default;
  // Streams: confirms the call before its first message.
  virtual void BeginStream() = 0;
  // Streams: sends a message; the next one only after `on_written`.
  virtual void Write(const Message& message) = 0;
  // Called after each message, when it is on its way; never inside Write of the same thread's caller's lock.
  virtual void SetOnWritten(std::function<void()> on_written) = 0;
  // Runs `task` after `delay`, or at once when the connection closes; not when the client gives up before. Called at
  // most once, while the call begins, and the request is not read any more.
  virtual void CallLater(std::chrono::nanoseconds delay, std::function<void()> task) = 0;
  // Ends the call; `response` is null for a failure and for a stream. Only the first counts.
  virtual void Finish(const absl::Status& status, const Message* response) = 0;
};

// Services that every handler's call uses. All of them outlive every call.
struct GateServices {
  core::Observer& observer;
  const log::Logger& logger;
  const Clock& clock;
};

// One call: its caller, its session, its messages, and the one way to end it.
// Lifetime: shared; a call that is dropped without Finish ends as INTERNAL_FAULT, so that none hangs. The messages live
//           as long as the call. A client that cancels may end it at any time after the handler returned: from then on
//           touch the response only inside `fill`.
// Threads:  safe. Only the first Finish or Cancel counts.
class Call : public std::enable_shared_from_this<Call> {
 public:
  using Message = google::protobuf::Message;
  using Fill = std::function<void()>;

  // Whether the call has a single response or is a stream.
  enum class Shape : uint8_t { kUnary, kStream };

  // `response` is null for a stream.
  Call(const GateServices& services, std::shared_ptr<ConnectionContext> connection, const core::Operation& row,
       Shape shape, std::unique_ptr<Message> response, std::shared_ptr<ClientEnd> end);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  ConnectionContext& connection() { return *connection_; }
  // Null for a method that needs no session.
  const std::shared_ptr<core::Session>& session() const { return session_; }
  // Ends the call. `fill` writes the response, unless the client has cancelled; false when it had cancelled before.
  bool Finish(const absl::Status& status, const Fill& fill = nullptr);
  // Runs `fill` unless the call has ended.
  void WhileLive(const Fill& fill);
  // Detail for the audit line besides objects and outcome: "refused=3 of=64". Must be set before the end of the call.
  void SetNote(std::string note);
  // Runs `hook` when the client cancels or disconnects before the call has ended, and at once if it has ended. For what
  // waits on behalf of the call. Must be called once at most.
  void OnCancel(std::function<void()> hook);
  // The call waits for something: its duration is no measure of the daemon, and is not recorded.
  void DoNotMeasure() { is_measured_.store(false); }
  // Ends the call after the client cancelled or disconnected.
  void Cancel();
  // Runs `on_end` once, when the call ends or if it has ended, without a lock held.
  void SetOnEnd(std::function<void()> on_end);
  // The client's end, for a stream's messages.
  const std::shared_ptr<ClientEnd>& end() const { return end_; }

 private:
  friend class Gate;

  // Counts the call against its caller's rate. If refused, `wait` is the time until a call would pass. Errors:
  // RATE_LIMITED.
  absl::Status CountAgainstRate(std::chrono::nanoseconds* wait);
  // Checks the call against its row. Errors: METHOD_NOT_PERMITTED, SESSION_REQUIRED, SESSION_ENDING.
  absl::StatusOr<std::optional<core::SessionGuard>> Admit();
  // Ends the call after a delay, because its client calls too often.
  void FinishLater(std::chrono::nanoseconds wait, const absl::Status& status);
  // Keeps the request for as long as the call lives.
  const Message* TakeRequest(std::unique_ptr<Message> request);
  bool IsDecision(const absl::Status& status) const;
  // `session` may be null.
  void CountRefusal(const absl::Status& status, const core::Session* session) const;
  void Report(const absl::Status& status, const Message* request, const Message* response, const std::string& note);
  void ReportDecision(const absl::Status& status, std::string object, const std::string& note);

  const GateServices services_;
  const std::shared_ptr<ConnectionContext> connection_;
  const core::Operation& row_;
  const Shape shape_;
  const std::shared_ptr<ClientEnd> end_;
  const Instant started_;
  // Null for a stream. Its handler writes into it until the call ends.
  const std::unique_ptr<Message> response_;
  std::shared_ptr<core::Session> session_;
  Mutex mutex_;
  bool ended_ RNICD_GUARDED_BY(mutex_) = false;
  // Null when it was not, or could not be, read.
  std::unique_ptr<Message> request_ RNICD_GUARDED_BY(mutex_);
  std::string note_ RNICD_GUARDED_BY(mutex_);
  std::function<void()> on_end_ RNICD_GUARDED_BY(mutex_);
  std::function<void()> on_cancel_ RNICD_GUARDED_BY(mutex_);
  std::atomic<bool> is_measured_{true};
};

}  // namespace rnicd::gate
