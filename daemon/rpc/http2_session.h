#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "daemon/rpc/bounds/flood_guard.h"
#include "daemon/rpc/bounds/frame_filter.h"
#include "daemon/rpc/bounds/limits.h"
#include "wire/http2/fields.h"

namespace rnicd::rpc {

class Calls;

// The server's end of HTTP/2 on one connection, by nghttp2, without a socket: bytes in, what they mean for calls, and
// bytes out. What belongs to no call ends here: acknowledgements, the two steps of the goodbye, and floods.
// Bounds that nghttp2 keeps: CONTINUATION frames, settings in a frame, acknowledgements that wait.
// Lifetime: `calls` outlives it. It calls them inside Receive and NextOutput, where they may submit frames.
// Threads:  one at a time.
class Http2Session {
 public:
  Http2Session(Calls& calls, const Limits& limits, Instant now);

  // Takes what has come from the client until `now`. Not to be called once the session is broken.
  void Receive(std::string_view bytes, Instant now);
  // Bytes for the client, until the next call; empty when there are none for now.
  std::string_view NextOutput();
  // True when GOAWAY was sent and received, and all output is flushed.
  bool finished() const;
  // True when the client has broken the protocol or a limit: what NextOutput gives then is the last.
  bool broken() const { return broken_; }
  // True once the client has acknowledged our settings.
  bool greeted() const { return greeted_; }
  // True once the client was told that the connection closes, and once it may open no more streams.
  bool announced() const { return announced_; }
  bool closing() const { return closing_; }
  // Frames that wait to be sent, without DATA.
  size_t waiting_frames() const;

  // Headers of the response; without a body they end the stream.
  void Respond(int32_t stream_id, const std::vector<http2::HeaderField>& headers, bool has_body);
  // After the body has ended.
  void SendTrailers(int32_t stream_id, const std::vector<http2::HeaderField>& trailers);
  // The stream has output again.
  void Resume(int32_t stream_id);
  // Ends the stream; what waits to be sent on it is dropped.
  void Reset(int32_t stream_id, uint32_t error_code);
  // Lets the client send as many bytes again, on this stream and on the connection.
  void Consume(int32_t stream_id, size_t bytes);
  // A response gets on, which pays for the frames before it.
  void ForgetFrames() { flood_.Forget(); }
  // Tells the client to open no more streams, and asks it to acknowledge a ping: what it opened before it knew has come
  // by then, and further streams are refused. Those that are open go on.
  void AnnounceGoAway();
  // Frees what the session takes. Nothing is called afterwards.
  void Free() { session_.reset(); }

 private:
  struct Delete {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  static Http2Session& Self(void* user_data) { return *static_cast<Http2Session*>(user_data); }
  static nghttp2_session_callbacks* NewCallbacks();
  static nghttp2_session* NewSession(Http2Session* self);
  static ssize_t ReadOutput(nghttp2_session* session, int32_t stream_id, uint8_t* buffer, size_t size, uint32_t* flags,
                            nghttp2_data_source* source, void* self);

  void OnFrame(const nghttp2_frame& frame);
  void OnPingAcknowledged();
  void CountIdle();
  void CountGivenUp(uint32_t frames);
  // Sends a client away that is not allowed what it does.
  void Allow(bool allowed, std::string_view reason);
  void SendGoAway(uint32_t error_code, std::string_view debug_data);

  Calls& calls_;
  FrameFilter filter_;
  FloodGuard flood_;
  // When the bytes of Receive came.
  Instant now_;
  bool greeted_ = false;
  bool announced_ = false;
  bool closing_ = false;
  bool broken_ = false;
  std::unique_ptr<nghttp2_session, Delete> session_;
};

}  // namespace rnicd::rpc
