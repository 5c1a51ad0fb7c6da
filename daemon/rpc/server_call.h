#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/rpc/bounds/budget.h"
#include "daemon/rpc/incoming_request.h"
#include "daemon/rpc/outgoing_response.h"
#include "daemon/rpc/socket/event_loop.h"

namespace rnicd::rpc {

class Calls;
class Connection;

// One call of a client, from the arrival of its whole request or its refusal: the way to answer it.
// Lifetime: shared; may outlive its connection and the server, which then ignore the answer. Keeps what its request
//           costs charged.
// Threads:  Begin, Write and Finish from any; the rest only inside the CallHandler.
class ServerCall {
 public:
  ServerCall(std::shared_ptr<EventLoop> loop, std::weak_ptr<Connection> connection, int32_t stream_id, std::string path,
             std::string message, BudgetCharge charge, std::optional<Refusal> refusal = std::nullopt)
      : loop_(std::move(loop)),
        connection_(std::move(connection)),
        stream_id_(stream_id),
        path_(std::move(path)),
        message_(std::move(message)),
        charge_(std::move(charge)),
        refusal_(refusal) {}

  // "/rnicd.v1.MemoryService/CreateMr".
  const std::string& path() const { return path_; }
  // Why the wire refuses the call: then it has no message, and its handler ends it.
  const std::optional<Refusal>& refusal() const { return refusal_; }
  // The bytes of the request's message.
  const std::string& message() const { return message_; }
  // Frees the bytes, but not their charge: what was parsed from them takes as much.
  void DropMessage() { std::string().swap(message_); }
  // Charges more bytes for what is made of the request. False when the budget has no room.
  bool Charge(uint64_t bytes) { return charge_.Grow(bytes); }

  // Runs `task` on the loop's thread after `delay`, or at once when the connection closes; not when the call has ended
  // before. At most once.
  void CallLater(std::chrono::nanoseconds delay, std::function<void()> task);
  // Called on the loop's thread, at most once, when the client has given up: a reset, a deadline, a closed connection.
  // Not called after Finish.
  void SetOnCancel(std::function<void()> on_cancel) { on_cancel_ = std::move(on_cancel); }
  // Called on the loop's thread whenever everything that was written is on its way to the client.
  void SetOnWritten(std::function<void()> on_written) { on_written_ = std::move(on_written); }

  // Streams: confirms the call to the client before its first message.
  void Begin();
  // Streams: sends a message. The caller waits for SetOnWritten's callback before it writes again.
  void Write(std::string message);
  // Ends the call, after `message` if it succeeds and has one: a unary call has, a stream has not. Only the first
  // counts.
  void Finish(Status status, std::optional<std::string> message = std::nullopt);

 private:
  friend class Calls;
  // The connection has no more news for the call. Lets go of the callbacks, which may keep the call.
  void End(bool cancelled);
  // Runs `answer` on the loop's thread, with the connection's calls while it is there: now, when this is that thread.
  template <typename Answer>
  void OnLoop(Answer answer);

  const std::shared_ptr<EventLoop> loop_;
  const std::weak_ptr<Connection> connection_;
  const int32_t stream_id_;
  const std::string path_;
  std::string message_;
  BudgetCharge charge_;
  const std::optional<Refusal> refusal_;
  std::function<void()> on_cancel_;
  std::function<void()> on_written_;
};

// Receives the calls of one connection, on the loop's thread. Must not block.
using CallHandler = std::function<void(const std::shared_ptr<ServerCall>&)>;

}  // namespace rnicd::rpc
