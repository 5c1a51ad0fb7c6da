#include "daemon/rpc/http2_session.h"

#include <array>
#include <utility>

#include "daemon/rpc/calls.h"
#include "wire/http2/fields.h"

namespace rnicd::rpc {
namespace {

using http2::TextOf;

// Settings in one frame, and acknowledgements that wait to be sent; a client that causes more is disconnected.
constexpr size_t kSettingsMax = 32;
constexpr size_t kAcknowledgementsMax = 256;
constexpr size_t kContinuationsMax = 8;
// Calls whose deadlines are shorter than their way here are reset by the thousand. FloodGuard bounds them.
constexpr uint64_t kNoResetLimit = UINT64_MAX;

}  // namespace

// nghttp2's callbacks, with the session as their user data.
nghttp2_session_callbacks* Http2Session::NewCallbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      callbacks, [](nghttp2_session* session, const nghttp2_frame* frame, void* self) {
        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST ||
            Self(self).calls_.OnRequestBegins(frame->hd.stream_id)) {
          return 0;
        }
        Self(self).CountIdle();  // It costs a reset, and no call.
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        return int{NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE};
      });
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t /*flags*/, void* self) {
        // Trailers of a request mean nothing to gRPC.
        if (frame->headers.cat != NGHTTP2_HCAT_REQUEST ||
            Self(self).calls_.OnHeader(frame->hd.stream_id, TextOf(name, name_size), TextOf(value, value_size))) {
          return 0;
        }
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_ENHANCE_YOUR_CALM);
        return int{NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE};
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session* /*session*/, const nghttp2_frame* frame, void* self) {
        Self(self).OnFrame(*frame);
        return 0;
      });
  // nghttp2 has refused the frame, and reset its stream if there is one: also streams above the limit, of a client that
  // has not acknowledged our settings.
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
      callbacks, [](nghttp2_session* /*session*/, const nghttp2_frame* /*frame*/, int /*error*/, void* self) {
        Self(self).CountIdle();
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session* /*session*/, uint8_t /*flags*/, int32_t stream_id, const uint8_t* bytes,
                    size_t size, void* self) {
        Self(self).calls_.OnData(stream_id, TextOf(bytes, size));
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_send_callback(
      callbacks, [](nghttp2_session* /*session*/, const nghttp2_frame* frame, void* self) {
        if (frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
          Self(self).calls_.OnResponseSent(frame->hd.stream_id);
        }
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session* /*session*/, int32_t stream_id, uint32_t /*error_code*/, void* self) {
        Self(self).calls_.OnStreamClosed(stream_id);
        return 0;
      });
  return callbacks;
}

ssize_t Http2Session::ReadOutput(nghttp2_session* /*session*/, int32_t stream_id, uint8_t* buffer, size_t size,
                                 uint32_t* flags, nghttp2_data_source* /*source*/, void* self) {
  const Calls::Output output = Self(self).calls_.OnOutputWanted(stream_id, reinterpret_cast<char*>(buffer), size);
  if (output.ended) {
    // The trailers have the flag that ends the stream.
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
  } else if (output.bytes == 0) {
    return NGHTTP2_ERR_DEFERRED;
  }
  return static_cast<ssize_t>(output.bytes);
}

nghttp2_session* Http2Session::NewSession(Http2Session* self) {
  nghttp2_session_callbacks* const callbacks = NewCallbacks();
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  // It would reset calls whose :authority is the path of the socket, as Go's gRPC says. IncomingRequest reads what
  // matters.
  nghttp2_option_set_no_http_messaging(option, 1);
  nghttp2_option_set_max_settings(option, kSettingsMax);
  nghttp2_option_set_max_outbound_ack(option, kAcknowledgementsMax);
  nghttp2_option_set_stream_reset_rate_limit(option, kNoResetLimit, kNoResetLimit);
  nghttp2_option_set_max_continuations(option, kContinuationsMax);
  nghttp2_session* session = nullptr;
  nghttp2_mem memory = http2::WipingMemory();
  nghttp2_session_server_new3(&session, callbacks, self, option, &memory);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  return session;
}

Http2Session::Http2Session(Calls& calls, const Limits& limits, Instant now)
    : calls_(calls), flood_(limits, now), now_(now), session_(NewSession(this)) {
  const std::array<nghttp2_settings_entry, 2> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.calls_max},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.header_bytes_max},
  }};
  nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
}

void Http2Session::Receive(std::string_view bytes, Instant now) {
  now_ = now;
  while (!bytes.empty()) {
    const std::string_view passed = filter_.Next(bytes);
    const ssize_t taken =
        nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const uint8_t*>(passed.data()), passed.size());
    if (taken != static_cast<ssize_t>(passed.size())) {
      broken_ = true;
      return;
    }
  }
  if (const uint32_t dropped = filter_.TakeDropped(); dropped > 0) {
    CountGivenUp(dropped);
  }
}

void Http2Session::OnFrame(const nghttp2_frame& frame) {
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  const bool acknowledges = (frame.hd.flags & NGHTTP2_FLAG_ACK) != 0;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) {
        calls_.OnHeadersEnd(frame.hd.stream_id);
      } else if (!ends) {
        CountIdle();
      }
      break;
    case NGHTTP2_DATA:
      // An empty one that does not end its call is only a cost.
      if (frame.hd.length == 0 && !ends) {
        CountIdle();
      }
      break;
    case NGHTTP2_SETTINGS:
      greeted_ = greeted_ || acknowledges;
      return acknowledges ? void() : CountIdle();
    case NGHTTP2_PING:
      return acknowledges ? OnPingAcknowledged() : CountIdle();
    case NGHTTP2_WINDOW_UPDATE:
      // gRPC's C core sends one for each call, also for those that it gives up.
      return frame.hd.stream_id == 0 ? CountIdle() : CountGivenUp(1);
    case NGHTTP2_RST_STREAM:
      return CountGivenUp(1);
    default:
      return CountIdle();
  }
  if (ends) {
    calls_.OnRequestEnds(frame.hd.stream_id);
  }
}

void Http2Session::OnPingAcknowledged() {
  if (announced_ && !closing_) {
    closing_ = true;
    SendGoAway(NGHTTP2_NO_ERROR, {});
  } else {
    CountIdle();
  }
}

void Http2Session::CountIdle() { Allow(flood_.CountIdle(now_), "too_many_pings"); }

void Http2Session::CountGivenUp(uint32_t frames) { Allow(flood_.CountGivenUp(frames, now_), "too_many_resets"); }

void Http2Session::Allow(bool allowed, std::string_view reason) {
  if (!allowed && !std::exchange(broken_, true)) {
    SendGoAway(NGHTTP2_ENHANCE_YOUR_CALM, reason);
  }
}

void Http2Session::SendGoAway(uint32_t error_code, std::string_view debug_data) {
  nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_.get()),
                        error_code, reinterpret_cast<const uint8_t*>(debug_data.data()), debug_data.size());
}

std::string_view Http2Session::NextOutput() {
  const uint8_t* bytes = nullptr;
  const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
  return size <= 0 ? std::string_view() : TextOf(bytes, static_cast<size_t>(size));
}

bool Http2Session::finished() const {
  return nghttp2_session_want_read(session_.get()) == 0 && nghttp2_session_want_write(session_.get()) == 0;
}

size_t Http2Session::waiting_frames() const { return nghttp2_session_get_outbound_queue_size(session_.get()); }

void Http2Session::Respond(int32_t stream_id, const std::vector<HeaderField>& headers, bool has_body) {
  const std::vector<nghttp2_nv> values = http2::NameValues(headers);
  const nghttp2_data_provider body = {.source = {.ptr = nullptr}, .read_callback = ReadOutput};
  nghttp2_submit_response(session_.get(), stream_id, values.data(), values.size(), has_body ? &body : nullptr);
}

void Http2Session::SendTrailers(int32_t stream_id, const std::vector<HeaderField>& trailers) {
  const std::vector<nghttp2_nv> values = http2::NameValues(trailers);
  nghttp2_submit_trailer(session_.get(), stream_id, values.data(), values.size());
}

void Http2Session::Resume(int32_t stream_id) { nghttp2_session_resume_data(session_.get(), stream_id); }

void Http2Session::Reset(int32_t stream_id, uint32_t error_code) {
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream_id, error_code);
}

void Http2Session::Consume(int32_t stream_id, size_t bytes) {
  nghttp2_session_consume(session_.get(), stream_id, bytes);
}

void Http2Session::AnnounceGoAway() {
  announced_ = true;
  nghttp2_submit_shutdown_notice(session_.get());
  nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr);
}

}  // namespace rnicd::rpc
