#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/secrets/secret.h"
#include "daemon/rpc/bounds/budget.h"
#include "daemon/rpc/bounds/limits.h"
#include "daemon/rpc/http2_session.h"
#include "daemon/rpc/incoming_request.h"
#include "daemon/rpc/outgoing_response.h"
#include "daemon/rpc/server_call.h"
#include "daemon/rpc/socket/event_loop.h"

namespace rnicd::rpc {

// Bytes of a connection's responses that wait for its client, and whether they get on.
class Backlog {
 public:
  // Bytes that HTTP/2 has not taken.
  uint64_t bytes() const { return bytes_; }
  // True while these wait, or others in front of the socket.
  bool waits() const { return bytes_ > 0 || blocked_; }

  void Add(uint64_t bytes) {
    progressed_ = progressed_ || !waits();
    bytes_ += bytes;
  }
  // HTTP/2 has taken them: the client has opened its window for them.
  void Take(uint64_t bytes) {
    progressed_ = progressed_ || bytes > 0;
    bytes_ -= bytes;
  }
  // Their call has ended.
  void Drop(uint64_t bytes) { bytes_ -= bytes; }
  // The socket has taken bytes. While a response waits for the client's window, what else is sent is no progress of it.
  void OnSent() { progressed_ = progressed_ || bytes_ == 0; }
  // Whether the socket takes no more for now.
  void SetBlocked(bool blocked) { blocked_ = blocked; }

  // True when responses have made no progress for `timeout`, as far as the calls of this function have seen.
  bool IsStuck(Instant now, Instant::duration timeout) {
    if (std::exchange(progressed_, false)) {
      progress_ = now;
    }
    return waits() && now - progress_ > timeout;
  }

 private:
  uint64_t bytes_ = 0;
  bool blocked_ = false;
  // True when responses got on, or began to wait, since IsStuck looked; and when it saw that.
  bool progressed_ = false;
  Instant progress_;
};

// Streams with a whole request whose call has not begun, and how many may begin before other connections have their
// turn: 64, or 64 KiB of messages, which the last may pass.
class ReadyCalls {
 public:
  void Insert(int32_t stream_id) { waiting_.insert(stream_id); }
  void Erase(int32_t stream_id) { waiting_.erase(stream_id); }
  bool empty() const { return waiting_.empty(); }

  void BeginTurn() {
    begun_ = 0;
    begun_bytes_ = 0;
  }
  bool TurnIsOver() const { return begun_ >= kCallsAtOnce || begun_bytes_ >= kMessageBytesAtOnce; }
  // The oldest; empty when there is none, or the turn is over.
  std::optional<int32_t> Take() {
    if (empty() || TurnIsOver()) {
      return std::nullopt;
    }
    return waiting_.extract(waiting_.begin()).value();
  }
  void CountBegun(size_t message_bytes) {
    ++begun_;
    begun_bytes_ += message_bytes;
  }

 private:
  static constexpr size_t kCallsAtOnce = 64;
  static constexpr size_t kMessageBytesAtOnce = 64 << 10;

  std::set<int32_t> waiting_;
  size_t begun_ = 0;
  size_t begun_bytes_ = 0;
};

// The calls of one connection: its streams, from the first frame of a request to the last one of its response.
//
// Nothing that a client sends costs more than was granted. A stream is charged when it begins; a message's length is
// charged before the first of its bytes is kept, and a client may send no more than the 64 KiB of HTTP/2's first window
// beyond what was charged. What does not fit is refused, and read and dropped. While responses wait for a client that
// does not read, its further requests are not begun.
// Lifetime: owned by its connection, which Closes it first.
// Threads:  the loop's. From outside only inside Connection::Run, which sends what there is to send afterwards.
class Calls {
 public:
  struct Options {
    Limits limits;
    // Gets each call whose request is whole, and each one that is refused; shared by the calls. Must not block.
    CallHandler handler;
    // The connection's own, below its owner's.
    std::shared_ptr<Budget> budget;
    // The digest of the secret that every request proves to know; without one none is asked for. See kSecretHeader.
    std::optional<SecretDigest> secret;
  };
  // What a stream has to send now.
  struct Output {
    size_t bytes = 0;
    // True when nothing follows but trailers, which were submitted.
    bool ended = false;
  };

  // `options` outlive it.
  Calls(std::shared_ptr<EventLoop> loop, std::weak_ptr<Connection> connection, const Options& options);

  Http2Session& http2() { return http2_; }
  Backlog& backlog() { return backlog_; }
  ReadyCalls& ready() { return ready_; }

  // What ServerCall does; ignored for a stream that is gone or answered.
  void CallLater(int32_t stream_id, std::chrono::nanoseconds delay, std::function<void()> task);
  void Begin(int32_t stream_id);
  void Write(int32_t stream_id, const std::string& message);
  void Finish(int32_t stream_id, Status status, const std::optional<std::string>& message);

  // What Http2Session reads. False refuses the stream; the client may send its request again.
  bool OnRequestBegins(int32_t stream_id);
  // False resets the stream.
  bool OnHeader(int32_t stream_id, std::string_view name, std::string_view value);
  void OnHeadersEnd(int32_t stream_id);
  void OnData(int32_t stream_id, std::string_view bytes);
  void OnRequestEnds(int32_t stream_id);
  // Copies at most `size` bytes of the stream's output into `buffer`. No byte and not ended: the stream waits for
  // Http2Session::Resume.
  Output OnOutputWanted(int32_t stream_id, char* buffer, size_t size);
  void OnResponseSent(int32_t stream_id);
  void OnStreamClosed(int32_t stream_id);

  // Once all output is on its way: tells calls that write so, and begins calls whose requests are there, up to the
  // turn's share. Returns whether there was one.
  bool Proceed();
  // Refuses requests that take too long. Returns whether there are others, or were.
  bool RefuseLate();
  // Runs what was to happen later.
  void RunAllLater();
  // True while a call may get a response, or has one that was not sent.
  bool HasPendingResponse() const;
  // Cancels all calls. Afterwards there are none.
  void Close();

 private:
  struct Stream {
    IncomingRequest request;
    OutgoingResponse response;
    // The call while it runs.
    std::shared_ptr<ServerCall> call;
    // The deadline of the call; once it has its response, the time for the rest of its request.
    EventLoop::Timer deadline;
    // What the call does later, and when.
    std::function<void()> later;
    EventLoop::Timer later_timer;

    // True until there is a call, or an answer without one.
    bool is_request() const { return call == nullptr && !response.ended(); }
  };

  Stream* Find(int32_t stream_id);
  // Null also for a stream whose response has its end.
  Stream* FindOpen(int32_t stream_id);
  // Runs `task` inside Connection::Run, unless the connection is gone by then.
  EventLoop::Timer CallAt(Instant due, std::function<void()> task) const;
  std::shared_ptr<ServerCall> MakeCall(int32_t stream_id, Stream& stream, std::optional<Refusal> refusal);
  void Refuse(int32_t stream_id, Refusal refusal);
  bool BeginReady();
  bool ReportWritten();
  void OnDeadline(int32_t stream_id);
  void RunLater(int32_t stream_id);
  void SendHeaders(int32_t stream_id, Stream& stream);

  const std::shared_ptr<EventLoop> loop_;
  const std::weak_ptr<Connection> connection_;
  const Options& options_;
  Http2Session http2_;
  std::unordered_map<int32_t, Stream> streams_;
  ReadyCalls ready_;
  Backlog backlog_;
  // Streams to be told that their output is on its way.
  std::vector<int32_t> written_;
};

}  // namespace rnicd::rpc
