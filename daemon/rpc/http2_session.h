#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "daemon/rpc/frame_filter.h"
#include "daemon/rpc/limits.h"
#include "daemon/rpc/trailers.h"

namespace rnicd::rpc {

// What a stream has to send now.
struct Output {
  size_t bytes = 0;
  // True when nothing follows but trailers, which the callee has submitted.
  bool ended = false;
};

// Receives what the frames of a client mean. Called inside Http2Session::Receive and NextOutput, and may submit frames
// there, but must not destroy the session.
class Http2Events {
 public:
  virtual ~Http2Events() = default;
  // False refuses the stream; the client may send its request again.
  virtual bool OnRequestBegins(int32_t stream_id) = 0;
  // False resets the stream.
  virtual bool OnHeader(int32_t stream_id, std::string_view name, std::string_view value) = 0;
  virtual void OnHeadersEnd(int32_t stream_id) = 0;
  virtual void OnData(int32_t stream_id, std::string_view bytes) = 0;
  virtual void OnRequestEnds(int32_t stream_id) = 0;
  // The last frame of the response has been sent.
  virtual void OnResponseEnded(int32_t stream_id) = 0;
  virtual void OnStreamClosed(int32_t stream_id) = 0;
  // A frame that belongs to no call: a ping, settings, the connection's window update, a priority, one that was
  // refused.
  virtual void OnIdleFrame() = 0;
  // Frames that a client sends for calls that it gives up: resets, window updates, and all that FrameFilter takes out.
  virtual void OnGivenUp(uint32_t frames) = 0;
  virtual void OnSettingsAcknowledged() = 0;
  virtual void OnPingAcknowledged() = 0;
  // Copies at most `size` bytes of the stream's output into `buffer`. No byte and not ended: the stream waits for
  // Http2Session::Resume.
  virtual Output OnOutputWanted(int32_t stream_id, char* buffer, size_t size) = 0;
};

// The server's end of HTTP/2 on one connection, by nghttp2, without a socket: bytes in, events and bytes out.
// Bounds that nghttp2 keeps: CONTINUATION frames, settings in a frame, acknowledgements that wait.
// Lifetime: `events` outlives it. Threads: one at a time.
class Http2Session {
 public:
  Http2Session(Http2Events& events, const Limits& limits);

  // False when the client has broken the protocol: what NextOutput gives then is the last.
  bool Receive(std::string_view bytes);
  // Bytes for the client, until the next call; empty when there are none for now.
  std::string_view NextOutput();
  // True when both ends have said goodbye and nothing is left to say.
  bool finished() const;
  // Frames that wait to be sent, without DATA.
  size_t waiting_frames() const;

  // Headers of the response; without a body they end the stream.
  void Respond(int32_t stream_id, const std::vector<HeaderField>& headers, bool has_body);
  // After the body has ended.
  void SendTrailers(int32_t stream_id, const std::vector<HeaderField>& trailers);
  // The stream has output again.
  void Resume(int32_t stream_id);
  // Ends the stream; what waits to be sent on it is dropped.
  void Reset(int32_t stream_id, uint32_t error_code);
  // Lets the client send as many bytes again, on this stream and on the connection.
  void Consume(int32_t stream_id, size_t bytes);
  // Tells the client to open no more streams, and asks it to acknowledge a ping: what it opened before it knew has come
  // by then.
  void AnnounceGoAway();
  // Refuses further streams; those that are open go on.
  void GoAway();
  // Tells the client why its connection ends; the caller sends what is left and ends it.
  void Farewell(uint32_t error_code, std::string_view debug_data);
  // Frees what the session takes. Nothing is called afterwards.
  void Free() { session_.reset(); }

 private:
  struct Delete {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  Http2Events& events_;
  FrameFilter filter_;
  std::unique_ptr<nghttp2_session, Delete> session_;
};

}  // namespace rnicd::rpc
