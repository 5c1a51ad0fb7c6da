#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "daemon/core/observer.h"
#include "daemon/core/session.h"
#include "daemon/gate/connection_context.h"
#include "daemon/gate/method_table.h"
#include "daemon/gate/wire_status.h"
#include "daemon/log/logger.h"

namespace rnicd::gate {

// What every handler's call stands on. All of it outlives every call.
struct GateServices {
  core::Observer& observer;
  const log::Logger& logger;
  const Clock& clock;
};

// One call that was let through: who, in which session, and the one way to end it.
// Lifetime: shared; a call that is dropped without Finish ends as INTERNAL_FAULT, so that none hangs. Request and
//           response belong to gRPC and go when the call ends, which a client that gives up may cause at any time
//           after the handler returned: from then on touch them only inside `fill`.
// Threads:  safe. Only the first Finish or Cancel counts.
class Call {
 public:
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
  // The client gave up or is gone.
  void Cancel() { Finish(absl::CancelledError()); }

 private:
  friend class Gate;

  void EndWith(Finisher finisher);

  // Judges the call by its row. Errors: METHOD_NOT_PERMITTED, SESSION_REQUIRED, SESSION_ENDING.
  absl::StatusOr<std::optional<core::Session::Guard>> Admit();
  void Report(const absl::Status& status);

  const GateServices services_;
  const std::shared_ptr<ConnectionContext> connection_;
  const MethodRow& row_;
  const Shape shape_;
  const Instant started_;
  std::shared_ptr<core::Session> session_;
  Mutex mutex_;
  // Null once the call has ended.
  Finisher finisher_ RNICD_GUARDED_BY(mutex_);
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

// The one path into every handler of a connection: permission, session, metrics, log, and the error on the wire.
class Gate {
 public:
  Gate(const GateServices& services, std::shared_ptr<ConnectionContext> connection)
      : services_(services), connection_(std::move(connection)) {}

  // A handler that answers at once: absl::Status(Call&).
  template <typename Handler>
  grpc::ServerUnaryReactor* Unary(grpc::CallbackServerContext* context, const MethodRow& row, Handler handler) {
    return UnaryAsync(context, row, [&handler](const std::shared_ptr<Call>& call) { call->Finish(handler(*call)); });
  }

  // A handler that may answer later: void(std::shared_ptr<Call>). Its session is held only until the handler returns;
  // what goes on longer takes a Guard of its own.
  template <typename Handler>
  grpc::ServerUnaryReactor* UnaryAsync(grpc::CallbackServerContext* /*context*/, const MethodRow& row,
                                       Handler handler) {
    const auto call = std::make_shared<Call>(services_, connection_, row, Call::Shape::kUnary);
    auto* reactor = new UnaryReactor(call);
    call->EndWith([reactor](const absl::Status& status) { reactor->Finish(ToGrpcStatus(status)); });
    const auto admitted = call->Admit();
    if (admitted.ok()) {
      handler(call);
    } else {
      call->Finish(admitted.status());
    }
    return reactor;
  }

  // A server stream: the handler answers a reactor of its own and keeps the call until the stream is done. `refuse`
  // answers a reactor that ends with the status it is given.
  template <typename Handler, typename Refuse>
  auto Stream(const MethodRow& row, Handler handler, Refuse refuse) {
    const auto call = std::make_shared<Call>(services_, connection_, row, Call::Shape::kStream);
    call->EndWith([](const absl::Status&) {});
    const auto admitted = call->Admit();
    if (admitted.ok()) {
      return handler(call);
    }
    call->Finish(admitted.status());
    return refuse(ToGrpcStatus(admitted.status()));
  }

 private:
  const GateServices services_;
  const std::shared_ptr<ConnectionContext> connection_;
};

}  // namespace rnicd::gate
