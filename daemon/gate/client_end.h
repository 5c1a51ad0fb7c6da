#pragma once

#include <google/protobuf/message.h>

#include <chrono>
#include <functional>

#include "absl/status/status.h"

namespace rnicd::gate {

// The client's end of one call: messages and errors out, on whatever wire. The gate and the services know none, and
// their tests have an end of their own. Lifetime: shared by the call. Threads: safe; SetOnWritten only while the call
// begins.
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

}  // namespace rnicd::gate
