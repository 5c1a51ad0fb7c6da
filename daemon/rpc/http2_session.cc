#include "daemon/rpc/http2_session.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/heap.h"
#include "base/wipe.h"

namespace rnicd::rpc {
namespace {

// Settings in one frame, and acknowledgements that wait to be sent; a client that causes more is disconnected.
constexpr size_t kSettingsMax = 32;
constexpr size_t kAcknowledgementsMax = 256;
constexpr size_t kContinuationsMax = 8;
// Calls whose deadlines are shorter than their way here are reset by the thousand. Http2Events::OnGivenUp bounds them.
constexpr uint64_t kNoResetLimit = UINT64_MAX;

Http2Events& EventsOf(void* user_data) { return *static_cast<Http2Events*>(user_data); }

std::string_view TextOf(const uint8_t* bytes, size_t size) { return {reinterpret_cast<const char*>(bytes), size}; }

int OnBeginHeaders(nghttp2_session* session, const nghttp2_frame* frame, void* user_data) {
  if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST ||
      EventsOf(user_data).OnRequestBegins(frame->hd.stream_id)) {
    return 0;
  }
  nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
  return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

int OnHeader(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
             const uint8_t* value, size_t value_size, uint8_t /*flags*/, void* user_data) {
  if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
    return 0;  // Trailers of a request mean nothing to gRPC.
  }
  if (EventsOf(user_data).OnHeader(frame->hd.stream_id, TextOf(name, name_size), TextOf(value, value_size))) {
    return 0;
  }
  nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_ENHANCE_YOUR_CALM);
  return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

int OnFrame(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user_data) {
  Http2Events& events = EventsOf(user_data);
  const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
      if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        events.OnHeadersEnd(frame->hd.stream_id);
      } else if (!ends) {
        events.OnIdleFrame();
      }
      break;
    case NGHTTP2_DATA:
      // An empty one that does not end its call is only a cost.
      if (frame->hd.length == 0 && !ends) {
        events.OnIdleFrame();
      }
      break;
    case NGHTTP2_SETTINGS:
      if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
        events.OnSettingsAcknowledged();
        return 0;
      }
      events.OnIdleFrame();
      return 0;
    case NGHTTP2_PING:
      if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
        events.OnPingAcknowledged();
        return 0;
      }
      events.OnIdleFrame();
      return 0;
    case NGHTTP2_WINDOW_UPDATE:
      // gRPC's C core sends one for each call, also for those that it gives up.
      if (frame->hd.stream_id == 0) {
        events.OnIdleFrame();
        return 0;
      }
      [[fallthrough]];
    case NGHTTP2_RST_STREAM:
      events.OnGivenUp(1);
      return 0;
    default:
      events.OnIdleFrame();
      return 0;
  }
  if (ends) {
    events.OnRequestEnds(frame->hd.stream_id);
  }
  return 0;
}

// nghttp2 has refused the frame, and reset its stream if there is one: also streams above the limit, of a client that
// has not acknowledged our settings.
int OnInvalidFrame(nghttp2_session* /*session*/, const nghttp2_frame* /*frame*/, int /*error*/, void* user_data) {
  EventsOf(user_data).OnIdleFrame();
  return 0;
}

int OnDataChunk(nghttp2_session* /*session*/, uint8_t /*flags*/, int32_t stream_id, const uint8_t* bytes, size_t size,
                void* user_data) {
  EventsOf(user_data).OnData(stream_id, TextOf(bytes, size));
  return 0;
}

int OnFrameSent(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user_data) {
  if (frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
    EventsOf(user_data).OnResponseEnded(frame->hd.stream_id);
  }
  return 0;
}

int OnStreamClose(nghttp2_session* /*session*/, int32_t stream_id, uint32_t /*error_code*/, void* user_data) {
  EventsOf(user_data).OnStreamClosed(stream_id);
  return 0;
}

ssize_t ReadOutput(nghttp2_session* /*session*/, int32_t stream_id, uint8_t* buffer, size_t size, uint32_t* flags,
                   nghttp2_data_source* /*source*/, void* user_data) {
  const Output output = EventsOf(user_data).OnOutputWanted(stream_id, reinterpret_cast<char*>(buffer), size);
  if (output.ended) {
    // The trailers have the flag that ends the stream.
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
  } else if (output.bytes == 0) {
    return NGHTTP2_ERR_DEFERRED;
  }
  return static_cast<ssize_t>(output.bytes);
}

std::vector<nghttp2_nv> NameValues(const std::vector<HeaderField>& fields) {
  std::vector<nghttp2_nv> values;
  values.reserve(fields.size());
  for (const auto& [name, value] : fields) {
    // nghttp2 copies both, and its type only lacks a const.
    values.push_back({.name = reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                      .value = reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())),
                      .namelen = name.size(),
                      .valuelen = value.size(),
                      .flags = NGHTTP2_NV_FLAG_NONE});
  }
  return values;
}

void FreeWiped(void* memory, void* /*data*/) { WipeAndFree(memory); }

void* ReallocateWiped(void* memory, size_t size, void* /*data*/) {
  void* const moved = std::malloc(size);
  if (moved != nullptr && memory != nullptr) {
    std::memcpy(moved, memory, std::min(size, AllocatedBytes(memory)));
    WipeAndFree(memory);
  }
  return moved;
}

// Frames hold the secrets of requests and responses.
nghttp2_mem WipingMemory() {
  return {.mem_user_data = nullptr,
          .malloc = [](size_t size, void* /*data*/) { return std::malloc(size); },
          .free = FreeWiped,
          .calloc = [](size_t count, size_t size, void* /*data*/) { return std::calloc(count, size); },
          .realloc = ReallocateWiped};
}

nghttp2_session* NewSession(Http2Events& events) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, OnBeginHeaders);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, OnInvalidFrame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnDataChunk);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, OnFrameSent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClose);
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  // It would reset calls whose :authority is the path of the socket, as Go's gRPC says. RequestHeaders reads what
  // matters.
  nghttp2_option_set_no_http_messaging(option, 1);
  nghttp2_option_set_max_settings(option, kSettingsMax);
  nghttp2_option_set_max_outbound_ack(option, kAcknowledgementsMax);
  nghttp2_option_set_stream_reset_rate_limit(option, kNoResetLimit, kNoResetLimit);
  nghttp2_option_set_max_continuations(option, kContinuationsMax);
  nghttp2_session* session = nullptr;
  nghttp2_mem memory = WipingMemory();
  nghttp2_session_server_new3(&session, callbacks, &events, option, &memory);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  return session;
}

}  // namespace

Http2Session::Http2Session(Http2Events& events, const Limits& limits) : events_(events), session_(NewSession(events)) {
  const std::array<nghttp2_settings_entry, 2> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.calls_max},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.header_bytes_max},
  }};
  nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
}

bool Http2Session::Receive(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view passed = filter_.Next(bytes);
    const ssize_t taken =
        nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const uint8_t*>(passed.data()), passed.size());
    if (taken != static_cast<ssize_t>(passed.size())) {
      return false;
    }
  }
  if (const uint32_t dropped = filter_.TakeDropped(); dropped > 0) {
    events_.OnGivenUp(dropped);
  }
  return true;
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
  const std::vector<nghttp2_nv> values = NameValues(headers);
  const nghttp2_data_provider body = {.source = {.ptr = nullptr}, .read_callback = ReadOutput};
  nghttp2_submit_response(session_.get(), stream_id, values.data(), values.size(), has_body ? &body : nullptr);
}

void Http2Session::SendTrailers(int32_t stream_id, const std::vector<HeaderField>& trailers) {
  const std::vector<nghttp2_nv> values = NameValues(trailers);
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
  nghttp2_submit_shutdown_notice(session_.get());
  nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr);
}

void Http2Session::GoAway() {
  nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_.get()),
                        NGHTTP2_NO_ERROR, nullptr, 0);
}

void Http2Session::Farewell(uint32_t error_code, std::string_view debug_data) {
  nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_.get()),
                        error_code, reinterpret_cast<const uint8_t*>(debug_data.data()), debug_data.size());
}

}  // namespace rnicd::rpc
