#pragma once

#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "client/cpp/channel/channel.h"
#include "gtest/gtest.h"
#include "wire/http2/fields.h"
#include "wire/http2/message.h"
#include "wire/http2/status.h"

namespace rnicd::inline client {

// The daemon's end of a channel, which does what a test says, when it says it. Each method that waits reads from the
// channel meanwhile. Threads: one, the test's.
class ScriptedDaemon {
 public:
  struct Request {
    int32_t stream = 0;
    std::map<std::string, std::string> headers;
    std::string message;
  };

  ScriptedDaemon() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    socket_.Reset(ends[0]);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    channel_ =
        std::make_unique<Channel>(DaemonSocket{.socket = UniqueSocket(ends[1]), .authorization = "", .pipe = nullptr});
    nghttp2_session_server_new(&session_, Callbacks(), this);
    // Whatever the channel sends may be read.
    const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindowBytes};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &window, 1);
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWindowBytes);
  }
  ScriptedDaemon(const ScriptedDaemon&) = delete;
  ScriptedDaemon& operator=(const ScriptedDaemon&) = delete;
  ~ScriptedDaemon() { nghttp2_session_del(session_); }

  Channel& channel() { return *channel_; }
  void DropChannel() { channel_.reset(); }

  // The next request that has come whole.
  Request Next() {
    while (whole_.empty() && Read()) {
    }
    EXPECT_FALSE(whole_.empty()) << "the channel ended";
    Request request = whole_.empty() ? Request() : std::move(whole_.front());
    whole_.pop_front();
    return request;
  }
  // The next stream that the channel gave up.
  int32_t NextReset() {
    while (resets_.empty() && Read()) {
    }
    const int32_t stream = resets_.empty() ? 0 : resets_.front();
    resets_.pop_front();
    return stream;
  }

  void Answer(int32_t stream, std::string_view message, const http2::Status& status = {}) {
    Send(stream, message);
    End(stream, status);
  }
  // A message, of which more may follow.
  void Send(int32_t stream, std::string_view message) {
    SendBytes(stream, http2::PrefixOf(message.size()).append(message));
  }
  void SendBytes(int32_t stream, std::string bytes) {
    Begin(stream);
    outputs_[stream].bytes.append(bytes);
    nghttp2_session_resume_data(session_, stream);
    Flush();
  }
  void End(int32_t stream, const http2::Status& status) {
    Begin(stream);
    ends_[stream] = http2::TrailersOf(status);
    nghttp2_session_resume_data(session_, stream);
    Flush();
  }
  // An answer of headers alone.
  void AnswerHeaders(int32_t stream, const std::vector<http2::HeaderField>& fields) {
    const std::vector<nghttp2_nv> values = http2::NameValues(fields);
    nghttp2_submit_response(session_, stream, values.data(), values.size(), nullptr);
    Flush();
  }
  void Reset(int32_t stream, uint32_t code) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, code);
    Flush();
  }
  void GoAway(int32_t last_stream) {
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last_stream, NGHTTP2_NO_ERROR, nullptr, 0);
    Flush();
  }
  void SendRaw(std::string_view bytes) {
    EXPECT_EQ(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void HangUp() { socket_.Reset(-1); }

 private:
  static constexpr int32_t kWindowBytes = 1 << 30;

  struct Output {
    std::string bytes;
    size_t sent = 0;
  };

  static ScriptedDaemon& Self(void* self) { return *static_cast<ScriptedDaemon*>(self); }

  static nghttp2_session_callbacks* Callbacks() {
    static nghttp2_session_callbacks* const callbacks = [] {
      nghttp2_session_callbacks* made = nullptr;
      nghttp2_session_callbacks_new(&made);
      nghttp2_session_callbacks_set_on_header_callback(
          made, [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                   const uint8_t* value, size_t value_size, uint8_t, void* self) {
            Self(self).begun_[frame->hd.stream_id].headers.emplace(http2::TextOf(name, name_size),
                                                                   http2::TextOf(value, value_size));
            return 0;
          });
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
          made, [](nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size, void* self) {
            Self(self).begun_[stream].message.append(http2::TextOf(bytes, size));
            return 0;
          });
      nghttp2_session_callbacks_set_on_frame_recv_callback(
          made, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
            Self(self).OnFrame(*frame);
            return 0;
          });
      return made;
    }();
    return callbacks;
  }

  void OnFrame(const nghttp2_frame& frame) {
    const int32_t stream = frame.hd.stream_id;
    if (frame.hd.type == NGHTTP2_RST_STREAM) {
      resets_.push_back(stream);
    } else if (stream != 0 && (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      Request request = std::move(begun_[stream]);
      request.stream = stream;
      request.message.erase(0, http2::kPrefixBytes);
      whole_.push_back(std::move(request));
    }
  }

  static ssize_t ReadOutput(nghttp2_session* session, int32_t stream, uint8_t* buffer, size_t size, uint32_t* flags,
                            nghttp2_data_source*, void* self) {
    Output& output = Self(self).outputs_[stream];
    const size_t bytes = std::min(size, output.bytes.size() - output.sent);
    std::copy_n(output.bytes.data() + output.sent, bytes, buffer);
    output.sent += bytes;
    const auto end = Self(self).ends_.find(stream);
    if (output.sent == output.bytes.size() && end != Self(self).ends_.end()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const std::vector<nghttp2_nv> values = http2::NameValues(end->second);
      nghttp2_submit_trailer(session, stream, values.data(), values.size());
    } else if (bytes == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(bytes);
  }

  void Begin(int32_t stream) {
    if (!answered_.emplace(stream, true).second) {
      return;
    }
    const std::vector<http2::HeaderField> fields = {{":status", "200"}, {"content-type", "application/grpc"}};
    const std::vector<nghttp2_nv> values = http2::NameValues(fields);
    const nghttp2_data_provider body = {.source = {.ptr = nullptr}, .read_callback = ReadOutput};
    nghttp2_submit_response(session_, stream, values.data(), values.size(), &body);
  }

  // False when the channel has ended.
  bool Read() {
    Flush();
    std::array<uint8_t, 65536> bytes;
    const ssize_t size = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    return size > 0 && nghttp2_session_mem_recv(session_, bytes.data(), static_cast<size_t>(size)) == size;
  }

  void Flush() {
    const uint8_t* bytes = nullptr;
    for (ssize_t size = nghttp2_session_mem_send(session_, &bytes); size > 0;
         size = nghttp2_session_mem_send(session_, &bytes)) {
      (void)send(socket_.get(), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
    }
  }

  UniqueFd socket_;
  std::unique_ptr<Channel> channel_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Request> begun_;
  std::deque<Request> whole_;
  std::deque<int32_t> resets_;
  std::map<int32_t, bool> answered_;
  std::map<int32_t, Output> outputs_;
  std::map<int32_t, std::vector<http2::HeaderField>> ends_;
};

}  // namespace rnicd::inline client
