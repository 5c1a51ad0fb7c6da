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
#include <vector>

#include "base/clock.h"
#include "base/secret.h"
#include "base/unique_socket.h"
#include "daemon/rpc/budget.h"
#include "daemon/rpc/event_loop.h"
#include "daemon/rpc/http2_session.h"
#include "daemon/rpc/limits.h"
#include "daemon/rpc/message_reader.h"
#include "daemon/rpc/request_headers.h"
#include "daemon/rpc/server_call.h"
#include "daemon/rpc/status.h"

namespace rnicd::rpc {

// gRPC's end of one client's socket: frames in, calls to the handler, answers out.
//
// Nothing that a client sends costs more than was granted. A stream is charged when it begins; a message's length is
// charged before the first of its bytes is kept, and a client may send no more than the 64 KiB of HTTP/2's first window
// beyond what was charged. What does not fit is refused, and read and dropped. While responses wait for a client that
// does not read, its further requests are not begun.
// Lifetime: shared; its loop keeps it until it has ended.
// Threads:  Open and Close from any; everything else on the loop's.
class Connection final : public Http2Events, public std::enable_shared_from_this<Connection> {
 public:
  struct Options {
    Limits limits;
    std::shared_ptr<CallHandler> handler;
    // The connection's own, below its owner's.
    std::shared_ptr<Budget> budget;
    // True when the client cannot send descriptors. Otherwise each read looks for them first, and a connection that
    // brings some ends: whoever receives one may be blocked by it.
    bool refuses_descriptors = false;
    // The digest of the secret that every request proves to know; without one none is asked for. See bearer.h.
    std::optional<SecretDigest> secret;
    // Called once, on the loop's thread, when the connection has ended and all its calls are cancelled.
    std::function<void(const Connection&)> on_end;
  };

  Connection(std::shared_ptr<EventLoop> loop, std::shared_ptr<const UniqueSocket> socket, Options options);

  // Begins to serve.
  void Open();
  // Ends the connection after its last responses, or when they take too long.
  void Close();

  // The most that its calls took at a time.
  uint64_t peak_bytes() const { return options_.budget->peak(); }
  EventLoop& loop() const { return *loop_; }

  // What ServerCall does; ignored for a stream that is gone or answered.
  void CallLater(int32_t stream_id, std::chrono::nanoseconds delay, std::function<void()> task);
  void BeginStream(int32_t stream_id);
  void WriteMessage(int32_t stream_id, const std::string& message);
  void FinishCall(int32_t stream_id, Status status, const std::optional<std::string>& message);

  bool OnRequestBegins(int32_t stream_id) override;
  bool OnHeader(int32_t stream_id, std::string_view name, std::string_view value) override;
  void OnHeadersEnd(int32_t stream_id) override;
  void OnData(int32_t stream_id, std::string_view bytes) override;
  void OnRequestEnds(int32_t stream_id) override;
  void OnResponseEnded(int32_t stream_id) override;
  void OnStreamClosed(int32_t stream_id) override;
  void OnIdleFrame() override;
  void OnGivenUp(uint32_t frames) override;
  void OnSettingsAcknowledged() override { greeted_ = true; }
  void OnPingAcknowledged() override;
  Output OnOutputWanted(int32_t stream_id, char* buffer, size_t size) override;

 private:
  // Bytes read from the socket before others have their turn, and gathered before they are sent.
  static constexpr size_t kBytesAtOnce = 64 << 10;

  struct Stream {
    Instant began;
    RequestHeaders headers;
    // True when the request has shown the connection's secret.
    bool proven = false;
    MessageReader reader;
    // What the stream costs, then also its message; moves to the call.
    BudgetCharge charge;
    // True when the whole request has arrived.
    bool complete = false;
    // The call while it runs.
    std::shared_ptr<ServerCall> call;
    // The deadline of the call; once it has its response, the time for the rest of its request.
    EventLoop::Timer deadline;
    // What the call does later, and when.
    std::function<void()> later;
    EventLoop::Timer later_timer;

    bool headers_sent = false;
    // True when the response's end is known; then the trailers follow the output.
    bool answered = false;
    Status status;
    std::string output;
    size_t output_sent = 0;
    BudgetCharge output_charge;
    // True while a call that writes waits to be told that everything has gone.
    bool tells_written = false;
  };

  Stream* Find(int32_t stream_id);
  // Forgets the frames that were counted, when their period is over.
  void ForgetOldFrames();
  // Forgets them because a response gets on.
  void OnProgress();
  void SendAway(std::string_view reason);
  void OnReady(uint32_t events);
  // False when the client has gone.
  bool ReadOnce();
  void Refuse(int32_t stream_id, Refusal refusal, uint64_t bytes);
  void AcceptLength(int32_t stream_id, Stream& stream);
  void StartDeadline(int32_t stream_id, Stream& stream);
  // Begins calls whose requests are there, up to the turn's share. Returns whether it began one.
  bool DispatchReady();
  bool TurnIsOver() const;
  std::shared_ptr<ServerCall> MakeCall(int32_t stream_id, Stream& stream);
  void RunLater(int32_t stream_id);
  void RunAllLater();
  void AddOutput(Stream& stream, const std::string& message);
  void SendHeaders(int32_t stream_id, Stream& stream);
  void SendTrailers(int32_t stream_id, const Status& status);
  // Sends what there is to send, unless a caller further up does it anyway.
  void FlushIfIdle();
  void Flush();
  // Bytes that are ready to be sent, at most about kBytesAtOnce. Empty when there are none.
  std::string& Gather();
  // False when the socket takes no more for now; what is left stays in pending_.
  bool Send(std::string_view bytes);
  // Tells calls that write that their output is on its way. Returns whether there was one.
  bool TellWritten();
  void UpdateInterest();
  void ScheduleCheck();
  // Ends what has taken too long.
  void CheckTimeouts();
  bool HasUnread() const { return unread_bytes_ > 0 || !pending_.empty(); }
  bool HasLastWords() const;
  void BeginClose();
  // Takes no more calls.
  void GoAway();
  void End();

  const std::shared_ptr<EventLoop> loop_;
  std::shared_ptr<const UniqueSocket> socket_;
  const Options options_;
  Http2Session http2_;

  std::unordered_map<int32_t, Stream> streams_;
  // Streams with a whole request whose call has not begun, oldest first.
  std::set<int32_t> ready_;
  // Calls begun since others had their turn, and the bytes of their messages.
  size_t begun_ = 0;
  size_t begun_bytes_ = 0;
  // Streams to be told that their output is on its way.
  std::vector<int32_t> drained_;
  // Bytes of responses that were not handed to the socket.
  uint64_t unread_bytes_ = 0;
  // What the socket did not take.
  std::string pending_;
  // True when responses got on, or began to wait, since CheckTimeouts looked; and when it saw that.
  bool progressed_ = false;
  Instant progress_;

  EventLoop::Key watch_ = 0;
  uint32_t interest_ = 0;
  EventLoop::Timer check_;
  EventLoop::Timer close_timer_;
  bool dispatch_posted_ = false;
  // True inside a function that ends with Flush.
  bool busy_ = false;
  bool greeted_ = false;
  // True once the client was told that the connection closes, and once it takes no more calls.
  bool announced_ = false;
  bool closing_ = false;
  // True when the protocol is broken: only the farewell is sent.
  bool broken_ = false;
  bool ended_ = false;
  Instant opened_;
  // Frames since the last response, at most since idle_since_.
  uint32_t idle_frames_ = 0;
  uint32_t given_up_ = 0;
  Instant idle_since_;
};

}  // namespace rnicd::rpc
