#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/server_callback.h>

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
#include "daemon/gate/late_answers.h"
#include "daemon/gate/method_table.h"
#include "daemon/gate/wire_status.h"
#include "daemon/log/logger.h"

namespace rnicd::gate {

// What every handler's call stands on. All of it outlives every call.
struct GateServices {
  core::Observer& observer;
  const log::Logger& logger;
  const Clock& clock;
  // For refusals of those who call too often. Goes before the rest, and after the last connection.
  LateAnswers& late_answers;
};

// One call: who, in which session, and the one way to end it.
// Lifetime: shared; a call that is dropped without Finish ends as INTERNAL_FAULT, so that none hangs. Request and
//           response belong to gRPC and go when the call ends, which a client that gives up may cause at any time
//           after the handler returned: from then on touch them only inside `fill`.
// Threads:  safe. Only the first Finish or Cancel counts.
class Call : public std::enable_shared_from_this<Call> {
 public:
  using Message = google::protobuf::Message;
  using Finisher = std::function<void(const absl::Status&)>;
  using Fill = std::function<void()>;

  // Whether the call is one answer or a stream.
  enum class Shape : uint8_t { kUnary, kStream };

  Call(const GateServices& services, std::shared_ptr<ConnectionContext> connection, const MethodRow& row, Shape shape);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  ConnectionContext& connection() { return *connection_; }
  // Null for a method that needs none.
  const std::shared_ptr<core::Session>& session() const { return session_; }
  // Ends the call. `fill` writes the response, if the client is still there; false when it had given up before.
  bool Finish(const absl::Status& status, const Fill& fill = nullptr);
  // Runs `fill` unless the call has ended.
  void WhileLive(const Fill& fill);
  // More for the audit line than objects and outcome say: "refused=3 of=64". Counts if it comes before the end.
  void Note(std::string note);
  // The client gave up or is gone.
  void Cancel() { Finish(absl::CancelledError()); }

 private:
  friend class Gate;

  // Both may be null. They must be there until `finisher` has been called.
  void Begin(const Message* request, const Message* response, Finisher finisher);
  // Judges the call by its row. Errors: RATE_LIMITED, METHOD_NOT_PERMITTED, SESSION_REQUIRED, SESSION_ENDING.
  absl::StatusOr<std::optional<core::Session::Guard>> Admit();
  // Ends a call that was not admitted: at once, or late when its client calls too often.
  void Refuse(const absl::Status& status);
  // A call that waits for its refusal needs no request, which may be large: a few ids stay.
  void LetGoOfRequest();
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
  // Until a call would not come too often.
  std::chrono::nanoseconds wait_{0};
  Mutex mutex_;
  // Null once the call has ended; so long the two messages are there, unless they are null.
  Finisher finisher_ RNICD_GUARDED_BY(mutex_);
  const Message* request_ RNICD_GUARDED_BY(mutex_) = nullptr;
  const Message* response_ RNICD_GUARDED_BY(mutex_) = nullptr;
  // What the request named, when it was let go.
  std::string named_ RNICD_GUARDED_BY(mutex_);
  std::string note_ RNICD_GUARDED_BY(mutex_);
};

// gRPC's end of a unary call. Owns itself, as reactors do.
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

  // A handler that answers at once: absl::Status(Call&).
  template <typename Handler>
  grpc::ServerUnaryReactor* Unary(const MethodRow& row, const Message* request, const Message* response,
                                  Handler handler) {
    return UnaryAsync(row, request, response,
                      [&handler](const std::shared_ptr<Call>& call) { call->Finish(handler(*call)); });
  }

  // A handler that may answer later: void(std::shared_ptr<Call>). Its session is held only until the handler returns;
  // what goes on longer takes a Guard of its own.
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

  // A server stream: the handler answers a reactor of its own and keeps the call until the stream is done. `refuse`
  // answers a reactor that does nothing but wait for its Finish, and cancels the call when its client gives up.
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
