#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/core/observer.h"
#include "daemon/core/session.h"
#include "daemon/gate/connection_context.h"
#include "daemon/gate/delayed_responses.h"
#include "daemon/gate/method_table.h"
#include "daemon/gate/wire_status.h"
#include "daemon/log/logger.h"

namespace rnicd::gate {

// Services that every handler's call uses. All of them outlive every call.
struct GateServices {
  core::Observer& observer;
  const log::Logger& logger;
  const Clock& clock;
  // Delays refusals for callers that call too often. Destroyed before the rest, and after the last connection.
  DelayedResponses& delayed_responses;
};

// One call: its caller, its session, and the one way to end it.
// Lifetime: shared; a call that is dropped without Finish ends as INTERNAL_FAULT, so that none hangs. Request and
// response belong to gRPC and are destroyed when the call ends, which a client that cancels may cause at any time after
// the handler returned: from then on touch them only inside `fill`.
// Threads:  safe. Only the first Finish or Cancel counts.
class Call : public std::enable_shared_from_this<Call> {
 public:
  using Message = google::protobuf::Message;
  using Finisher = std::function<void(const absl::Status&)>;
  using Fill = std::function<void()>;

  // Whether the call has a single response or is a stream.
  enum class Shape : uint8_t { kUnary, kStream };

  Call(const GateServices& services, std::shared_ptr<ConnectionContext> connection, const MethodRow& row, Shape shape);
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
  // The call waits for something: its duration tells nothing about the daemon, and is not measured.
  void DoNotMeasure() { is_measured_.store(false); }
  // Ends the call after the client cancelled or disconnected.
  void Cancel();

 private:
  friend class Gate;

  // Both messages may be null. They must live until `finisher` has been called.
  void Begin(const Message* request, const Message* response, Finisher finisher);
  // Checks the call against its row. Errors: RATE_LIMITED, METHOD_NOT_PERMITTED, SESSION_REQUIRED, SESSION_ENDING.
  absl::StatusOr<std::optional<core::Session::Guard>> Admit();
  // Ends a call that was not admitted: at once, or after a delay when its client calls too often.
  void Refuse(const absl::Status& status);
  // Releases the request, which may be large, while the call waits for its refusal; only a few ids are kept.
  void ReleaseRequest();
  bool IsDecision(const absl::Status& status) const;
  // `session` may be null.
  void CountRefusal(const absl::Status& status, const core::Session* session) const;
  void Report(const absl::Status& status, std::string object, const std::string& note);

  const GateServices services_;
  const std::shared_ptr<ConnectionContext> connection_;
  const MethodRow& row_;
  const Shape shape_;
  const Instant started_;
  std::shared_ptr<core::Session> session_;
  // Time until a call would be within the rate.
  std::chrono::nanoseconds wait_{0};
  Mutex mutex_;
  // Null once the call has ended; until then the two messages are valid, unless they are null.
  Finisher finisher_ RNICD_GUARDED_BY(mutex_);
  const Message* request_ RNICD_GUARDED_BY(mutex_) = nullptr;
  const Message* response_ RNICD_GUARDED_BY(mutex_) = nullptr;
  // Objects named by the request, kept when it is released.
  std::string named_ RNICD_GUARDED_BY(mutex_);
  std::string note_ RNICD_GUARDED_BY(mutex_);
  std::function<void()> on_cancel_ RNICD_GUARDED_BY(mutex_);
  std::atomic<bool> is_measured_{true};
};

// gRPC's end of a unary call. Owns itself, as all reactors do.
class UnaryReactor final : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryReactor(std::weak_ptr<Call> call) : call_(std::move(call)) {}
  void OnCancel() override {
    if (const std::shared_ptr<Call> call = call_.lock(); call != nullptr) {
      call->Cancel();
    }
  }
  void OnDone() override { delete this; }

 private:
  const std::weak_ptr<Call> call_;
};

// The one path into every handler of a connection: pace, permission, session, metrics, log, audit, and the error on the
// wire.
class Gate {
 public:
  using Message = google::protobuf::Message;

  Gate(const GateServices& services, std::shared_ptr<ConnectionContext> connection)
      : services_(services), connection_(std::move(connection)) {}

  // Runs a handler that returns its outcome at once: absl::Status(Call&).
  template <typename Handler>
  grpc::ServerUnaryReactor* Unary(const MethodRow& row, const Message* request, const Message* response,
                                  Handler handler) {
    return UnaryAsync(row, request, response,
                      [&handler](const std::shared_ptr<Call>& call) { call->Finish(handler(*call)); });
  }

  // Runs a handler that may finish the call later: void(std::shared_ptr<Call>). Its session is held only until the
  // handler returns; work that continues needs a Guard.
  template <typename Handler>
  grpc::ServerUnaryReactor* UnaryAsync(const MethodRow& row, const Message* request, const Message* response,
                                       Handler handler) {
    const auto call = std::make_shared<Call>(services_, connection_, row, Call::Shape::kUnary);
    auto* reactor = new UnaryReactor(call);
    call->Begin(request, response, [reactor](const absl::Status& status) { reactor->Finish(ToGrpcStatus(status)); });
    const auto admitted = call->Admit();
    if (admitted.ok()) {
      handler(call);
    } else {
      call->Refuse(admitted.status());
    }
    return reactor;
  }

  // A server stream: the handler returns a reactor and keeps the call until the stream is done. `refuse` returns a
  // reactor that only waits for its Finish, and cancels the call when its client does.
  template <typename Handler, typename Refuse>
  auto Stream(const MethodRow& row, const Message* request, Handler handler, Refuse refuse)
      -> std::invoke_result_t<Handler, const std::shared_ptr<Call>&> {
    const auto call = std::make_shared<Call>(services_, connection_, row, Call::Shape::kStream);
    call->Begin(request, nullptr, [](const absl::Status&) {});
    const auto admitted = call->Admit();
    if (admitted.ok()) {
      return handler(call);
    }
    auto* reactor = refuse(call);
    call->Begin(request, nullptr, [reactor](const absl::Status& status) { reactor->Finish(ToGrpcStatus(status)); });
    call->Refuse(admitted.status());
    return reactor;
  }

 private:
  const GateServices services_;
  const std::shared_ptr<ConnectionContext> connection_;
};

}  // namespace rnicd::gate
