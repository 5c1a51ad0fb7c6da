#include "client/cpp/channel/http2_client.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/cpp/transport_failure.h"
#include "wire/http2/fields.h"
#include "wire/http2/timeout.h"

namespace rnicd::inline client {
namespace {

// How far the daemon may send ahead: as much as a socket takes is not worth a frame that grants more.
constexpr int32_t kWindowBytes = 16 << 20;
// No response is longer.
constexpr uint32_t kMessageBytesMax = 256U << 20;
constexpr int kHttpOk = 200;

// What gRPC takes an HTTP/2 error code for.
absl::StatusCode CodeOf(uint32_t error_code) {
  switch (error_code) {
    case NGHTTP2_REFUSED_STREAM:
      return absl::StatusCode::kUnavailable;
    case NGHTTP2_CANCEL:
      return absl::StatusCode::kCancelled;
    case NGHTTP2_ENHANCE_YOUR_CALM:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status Refused() {
  return TransportFailure(absl::StatusCode::kUnavailable, "the daemon takes no more calls on this connection");
}

// A field whose texts live until it is sent.
nghttp2_nv FieldOf(std::string_view name, std::string_view value) {
  return {.name = reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          .value = reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

ClientCall::ClientCall(std::string_view request)
    : request_(http2::PrefixOf(request.size()).append(request)), received_(kMessageBytesMax) {}

void ClientCall::End(absl::Status failure) {
  if (!std::exchange(over_, true)) {
    failure_ = std::move(failure);
  }
  changed.NotifyAll();
}

nghttp2_session_callbacks* Http2Client::NewCallbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session* /*session*/, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t /*flags*/, void* self) {
        Self(self).OnHeader(frame->hd.stream_id, http2::TextOf(name, name_size), http2::TextOf(value, value_size));
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session* /*session*/, uint8_t /*flags*/, int32_t number, const uint8_t* bytes, size_t size,
                    void* self) {
        Self(self).OnData(number, http2::TextOf(bytes, size));
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session* /*session*/, int32_t number, uint32_t error_code, void* self) {
        Self(self).OnClose(number, error_code);
        return 0;
      });
  // The connection takes no more calls: no stream was opened that could close.
  nghttp2_session_callbacks_set_on_frame_not_send_callback(
      callbacks, [](nghttp2_session* /*session*/, const nghttp2_frame* frame, int /*error*/, void* self) {
        if (frame->hd.type == NGHTTP2_HEADERS) {
          Self(self).OnClose(frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        }
        return 0;
      });
  return callbacks;
}

ssize_t Http2Client::ReadRequest(nghttp2_session* /*session*/, int32_t number, uint8_t* buffer, size_t size,
                                 uint32_t* flags, nghttp2_data_source* /*source*/, void* self) {
  ClientCall* const call = Self(self).Find(number);
  if (call == nullptr) {
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  const size_t bytes = std::min(size, call->request_.size() - call->sent_);
  std::copy_n(call->request_.data() + call->sent_, bytes, buffer);
  call->sent_ += bytes;
  if (call->sent_ == call->request_.size()) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
  }
  return static_cast<ssize_t>(bytes);
}

nghttp2_session* Http2Client::NewSession(Http2Client* self) {
  nghttp2_session_callbacks* const callbacks = NewCallbacks();
  nghttp2_session* session = nullptr;
  nghttp2_mem memory = http2::WipingMemory();
  nghttp2_session_client_new3(&session, callbacks, self, nullptr, &memory);
  nghttp2_session_callbacks_del(callbacks);
  return session;
}

Http2Client::Http2Client(std::string authorization)
    : authorization_(std::move(authorization)), session_(NewSession(this)) {
  const std::array<nghttp2_settings_entry, 2> settings = {{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindowBytes},
  }};
  nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0, kWindowBytes);
}

int32_t Http2Client::Begin(const char* path, std::optional<std::chrono::nanoseconds> timeout, ClientCall& call) {
  const std::string timeout_text = timeout.has_value() ? http2::TimeoutText(*timeout) : std::string();
  std::array<nghttp2_nv, 8> fields = {
      FieldOf(":method", "POST"),         FieldOf(":scheme", "http"), FieldOf(":path", path),
      FieldOf(":authority", "localhost"), FieldOf("te", "trailers"),  FieldOf("content-type", "application/grpc"),
  };
  size_t count = 6;
  if (timeout.has_value()) {
    fields[count++] = FieldOf("grpc-timeout", timeout_text);
  }
  if (!authorization_.empty()) {
    fields[count++] = FieldOf("authorization", authorization_);
  }
  const nghttp2_data_provider body = {.source = {.ptr = nullptr}, .read_callback = ReadRequest};
  const int32_t number = nghttp2_submit_request(session_.get(), nullptr, fields.data(), count, &body, nullptr);
  if (number < 0) {
    call.End(Refused());
  } else {
    calls_.emplace(number, &call);
  }
  return number;
}

void Http2Client::Cancel(int32_t number) {
  if (calls_.erase(number) != 0) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, number, NGHTTP2_CANCEL);
  }
}

bool Http2Client::Receive(std::string_view bytes) {
  const ssize_t taken =
      nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return taken == static_cast<ssize_t>(bytes.size());
}

std::string_view Http2Client::NextOutput() {
  const uint8_t* bytes = nullptr;
  const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
  return size <= 0 ? std::string_view() : http2::TextOf(bytes, static_cast<size_t>(size));
}

bool Http2Client::takes_calls() const { return nghttp2_session_check_request_allowed(session_.get()) != 0; }

bool Http2Client::finished() const {
  return nghttp2_session_want_read(session_.get()) == 0 && nghttp2_session_want_write(session_.get()) == 0;
}

void Http2Client::End(const absl::Status& failure) {
  for (const auto& [number, call] : std::exchange(calls_, {})) {
    call->End(failure);
  }
}

ClientCall* Http2Client::Find(int32_t number) {
  const auto found = calls_.find(number);
  return found == calls_.end() ? nullptr : found->second;
}

void Http2Client::OnHeader(int32_t number, std::string_view name, std::string_view value) {
  ClientCall* const call = Find(number);
  if (call == nullptr) {
    return;
  }
  if (name == ":status") {
    (void)absl::SimpleAtoi(absl::string_view(value.data(), value.size()), &call->http_status_);
  } else {
    call->trailers_.Add(name, value);
  }
}

void Http2Client::OnData(int32_t number, std::string_view bytes) {
  ClientCall* const call = Find(number);
  if (call == nullptr) {
    return;
  }
  if (call->received_.Add(bytes)) {
    call->changed.NotifyAll();
    return;
  }
  call->End(TransportFailure(absl::StatusCode::kInternal, "the answer is no message of gRPC"));
  Cancel(number);
}

void Http2Client::OnClose(int32_t number, uint32_t error_code) {
  auto node = calls_.extract(number);
  if (node.empty()) {
    return;
  }
  ClientCall& call = *node.mapped();
  if (std::optional<http2::Status> status = call.trailers_.Take(); status.has_value()) {
    call.status_ = *std::move(status);
    call.End(absl::OkStatus());
  } else if (error_code == NGHTTP2_NO_ERROR || (call.http_status_ != 0 && call.http_status_ != kHttpOk)) {
    call.End(TransportFailure(absl::StatusCode::kInternal,
                              "an answer without a status of gRPC; HTTP's is " + std::to_string(call.http_status_)));
  } else if (error_code == NGHTTP2_REFUSED_STREAM) {
    call.End(Refused());
  } else {
    call.End(
        TransportFailure(CodeOf(error_code), std::string("the call was reset: ") + nghttp2_http2_strerror(error_code)));
  }
}

}  // namespace rnicd::inline client
