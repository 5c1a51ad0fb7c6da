#pragma once

// Shared by this folder's tests: a client on nghttp2's client side, and a handler whose calls end as their path says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/manual_clock_fake.h"
#include "base/mutex.h"
#include "base/system/socket_io.h"
#include "base/system/unique_socket.h"
#include "base/waiting_fixture.h"
#include "daemon/rpc/server.h"
#include "daemon/rpc/server_call.h"
#include "daemon/rpc/socket/socket_pair_fixture.h"
#include "wire/http2/message.h"

namespace rnicd::rpc {

using http2::PrefixOf;

// Something that another thread says once.
class Signal {
 public:
  void Set() {
    MutexLock lock(mutex_);
    set_ = true;
    changed_.NotifyAll();
  }
  bool Wait() {
    const Instant deadline = std::chrono::steady_clock::now() + kTimeout;
    MutexLock lock(mutex_);
    while (!set_) {
      if (!changed_.WaitUntil(mutex_, deadline)) {
        return set_;
      }
    }
    return true;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool set_ RNICD_GUARDED_BY(mutex_) = false;
};

// Runs `task` on the loop's thread, behind all that it had to do before, and returns when it has run.
inline void RunOn(EventLoop& loop, const EventLoop::Task& task) {
  Signal ran;
  loop.Post([&] {
    task();
    ran.Set();
  });
  ASSERT_TRUE(ran.Wait());
}

// What came back on a stream.
struct Response {
  // Headers and trailers.
  std::map<std::string, std::string> fields;
  std::string data;
  // HEADERS frames.
  int header_blocks = 0;
  bool closed = false;
  // True after an RST_STREAM.
  bool reset = false;
  // Code of the server's RST_STREAM, or of the stream's end.
  uint32_t error_code = 0;

  std::string Field(const std::string& name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? "" : found->second;
  }
  // The messages that have arrived whole.
  std::vector<std::string> Messages() const {
    std::vector<std::string> messages;
    for (std::string_view left = data; left.size() >= 5;) {
      size_t bytes = 0;
      for (const char byte : left.substr(1, 4)) {
        bytes = bytes << 8U | static_cast<unsigned char>(byte);
      }
      if (left.size() - 5 < bytes) {
        break;
      }
      messages.emplace_back(left.substr(5, bytes));
      left.remove_prefix(5 + bytes);
    }
    return messages;
  }
};

// A frame of HTTP/2 as no library writes it.
inline std::string RawFrame(uint8_t type, uint8_t flags, uint32_t stream_id, std::string_view payload) {
  std::string frame;
  for (const unsigned shift : {16U, 8U, 0U}) {
    frame.push_back(static_cast<char>(payload.size() >> shift));
  }
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    frame.push_back(static_cast<char>(stream_id >> shift));
  }
  return frame.append(payload);
}

// One connection. Sends and receives only inside Flush, SendRaw and Until.
// Threads: one.
class TestClient {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // `settings` are the client's own.
  explicit TestClient(UniqueSocket socket, const std::vector<nghttp2_settings_entry>& settings = {})
      : socket_(std::move(socket)), session_(nullptr, &nghttp2_session_del) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_session* session = nullptr;
    nghttp2_session_client_new(&session, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    session_.reset(session);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  }

  // Headers of a call, without a message. A field of `more` that begins with a colon replaces the usual one.
  int32_t Open(const std::string& path, const Fields& more = {}, const std::string& method = "POST",
               const std::string& content_type = "application/grpc") {
    Fields fields = {
        {":method", method}, {":scheme", "http"}, {":path", path}, {":authority", "localhost"}, {"te", "trailers"}};
    if (!content_type.empty()) {
      fields.emplace_back("content-type", content_type);
    }
    for (const auto& field : more) {
      const auto same =
          std::find_if(fields.begin(), fields.end(), [&](const auto& it) { return it.first == field.first; });
      if (field.first.starts_with(':') && same != fields.end()) {
        same->second = field.second;
      } else {
        fields.push_back(field);
      }
    }
    std::vector<nghttp2_nv> values;
    for (auto& [name, value] : fields) {
      values.push_back({reinterpret_cast<uint8_t*>(name.data()), reinterpret_cast<uint8_t*>(value.data()), name.size(),
                        value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    const nghttp2_data_provider body = {.source = {.ptr = nullptr}, .read_callback = ReadRequest};
    return nghttp2_submit_request(session_.get(), nullptr, values.data(), values.size(), &body, nullptr);
  }
  // Bytes of the stream's body.
  void Send(int32_t stream_id, std::string_view bytes, bool last = true) {
    Request& request = requests_[stream_id];
    request.bytes.append(bytes);
    request.last = last;
    nghttp2_session_resume_data(session_.get(), stream_id);
  }
  int32_t Call(const std::string& path, const std::string& message = "", const Fields& more = {}) {
    const int32_t stream_id = Open(path, more);
    Send(stream_id, PrefixOf(message.size()) + message);
    return stream_id;
  }
  // True when what was given to Send has left this client.
  bool HasSent(int32_t stream_id) { return requests_[stream_id].bytes.empty() && unsent_.empty(); }
  void Cancel(int32_t stream_id) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_CANCEL);
  }
  nghttp2_session* session() { return session_.get(); }

  // Sends without receiving; false when the socket takes no more within `limit`, or the server has gone.
  bool Flush(std::chrono::milliseconds limit = kTimeout) {
    for (;;) {
      const uint8_t* bytes = nullptr;
      if (unsent_.empty()) {
        const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
        if (size <= 0) {
          return true;
        }
        unsent_.assign(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
      }
      const int64_t sent = SendSocket(socket_.get(), unsent_);
      if (sent > 0) {
        unsent_.erase(0, static_cast<size_t>(sent));
      } else if (sent != kTryLater || !WaitFor(kWritable, limit)) {
        return false;
      }
    }
  }
  // Sends frames that the library does not know about, behind those that it has made.
  bool SendRaw(std::string_view frames) {
    if (!Flush()) {
      return false;
    }
    unsent_ = frames;
    return Flush();
  }
  // Sends and receives until the condition holds; false when it does not within kTimeout.
  bool Until(const std::function<bool()>& condition) {
    const Instant deadline = std::chrono::steady_clock::now() + kTimeout;
    while (Flush(std::chrono::milliseconds(0)) || !hung_up_) {
      if (condition()) {
        return true;
      }
      if (hung_up_ || std::chrono::steady_clock::now() > deadline) {
        return false;
      }
      // The condition may be another thread's doing.
      WaitFor(unsent_.empty() ? kReadable : kReadable | kWritable, std::chrono::milliseconds(2));
      Receive();
    }
    return condition();
  }
  bool UntilClosed(int32_t stream_id) {
    return Until([&] { return responses_[stream_id].closed; });
  }
  // Waits until something has arrived, and leaves it there.
  bool HasNews() const { return WaitFor(kReadable, kTimeout); }
  bool UntilHungUp() {
    return Until([&] { return hung_up_; });
  }
  const Response& Of(int32_t stream_id) { return responses_[stream_id]; }
  // The response of a call that is made now.
  Response Result(const std::string& path, const std::string& message = "", const Fields& more = {}) {
    const int32_t stream_id = Call(path, message, more);
    EXPECT_TRUE(UntilClosed(stream_id));
    return Of(stream_id);
  }
  // Pings of the server and answers to ours.
  int pings() const { return pings_; }
  // Last stream of each GOAWAY.
  const std::vector<int32_t>& last_streams() const { return last_streams_; }
  // Code and text of the last GOAWAY.
  const std::optional<std::pair<uint32_t, std::string>>& goaway() const { return goaway_; }

 private:
  struct Request {
    std::string bytes;
    bool last = false;
  };

  static TestClient& Self(void* user_data) { return *static_cast<TestClient*>(user_data); }
  static int OnHeader(nghttp2_session* /*session*/, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t /*flags*/, void* user_data) {
    Self(user_data).responses_[frame->hd.stream_id].fields[{reinterpret_cast<const char*>(name), name_size}] = {
        reinterpret_cast<const char*>(value), value_size};
    return 0;
  }
  static int OnFrame(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user_data) {
    if (frame->hd.type == NGHTTP2_HEADERS) {
      ++Self(user_data).responses_[frame->hd.stream_id].header_blocks;
    } else if (frame->hd.type == NGHTTP2_RST_STREAM) {
      Self(user_data).responses_[frame->hd.stream_id].reset = true;
    } else if (frame->hd.type == NGHTTP2_PING) {
      ++Self(user_data).pings_;
    } else if (frame->hd.type == NGHTTP2_GOAWAY) {
      Self(user_data).last_streams_.push_back(frame->goaway.last_stream_id);
      Self(user_data).goaway_.emplace(
          frame->goaway.error_code,
          std::string(reinterpret_cast<const char*>(frame->goaway.opaque_data), frame->goaway.opaque_data_len));
    }
    return 0;
  }
  static int OnData(nghttp2_session* /*session*/, uint8_t /*flags*/, int32_t stream_id, const uint8_t* bytes,
                    size_t size, void* user_data) {
    Self(user_data).responses_[stream_id].data.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int OnClose(nghttp2_session* /*session*/, int32_t stream_id, uint32_t error_code, void* user_data) {
    Self(user_data).responses_[stream_id].closed = true;
    Self(user_data).responses_[stream_id].error_code = error_code;
    return 0;
  }
  static ssize_t ReadRequest(nghttp2_session* /*session*/, int32_t stream_id, uint8_t* buffer, size_t size,
                             uint32_t* flags, nghttp2_data_source* /*source*/, void* user_data) {
    Request& request = Self(user_data).requests_[stream_id];
    const size_t bytes = std::min(size, request.bytes.size());
    std::copy_n(request.bytes.data(), bytes, buffer);
    request.bytes.erase(0, bytes);
    if (request.bytes.empty() && request.last) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (bytes == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(bytes);
  }
  bool WaitFor(uint32_t events, std::chrono::milliseconds limit) const {
    return WaitForSocket(socket_.get(), events, limit);
  }
  void Receive() {
    std::array<char, 65536> buffer;
    const int64_t size = ReadSocket(socket_.get(), buffer, /*refuses_descriptors=*/true);
    if (size > 0) {
      nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const uint8_t*>(buffer.data()),
                               static_cast<size_t>(size));
    } else if (size != kTryLater) {
      hung_up_ = true;
    }
  }

  const UniqueSocket socket_;
  std::unique_ptr<nghttp2_session, decltype(&nghttp2_session_del)> session_;
  std::map<int32_t, Request> requests_;
  std::map<int32_t, Response> responses_;
  std::string unsent_;
  int pings_ = 0;
  std::vector<int32_t> last_streams_;
  std::optional<std::pair<uint32_t, std::string>> goaway_;
  bool hung_up_ = false;
};

// /echo ends with its message, /later too but after as many milliseconds as it says, /fail with status 5, /hold when
// the test says, /count after as many messages as the request says, /large after one of as many bytes, /write after a
// message that it does not ask about, /nothing without any.
class TestHandler final {
 public:
  void OnCall(const std::shared_ptr<ServerCall>& call) {
    if (const auto& refusal = call->refusal(); refusal.has_value()) {
      call->Finish({.code = 100 + refusal->reason, .message = std::to_string(refusal->bytes), .details = call->path()});
      return;
    }
    const std::string& path = call->path();
    MutexLock lock(mutex_);
    ++begun_;
    if (path == "/echo") {
      call->Finish({}, call->message());
    } else if (path == "/fail") {
      call->Finish({.code = 5, .message = call->message(), .details = "details"});
    } else if (path == "/count") {
      Count(call);
    } else if (path == "/large") {
      call->Finish({}, std::string(std::stoul(call->message()), 'x'));
    } else if (path == "/later") {
      Later(call);
    } else if (path == "/nothing") {
      call->Finish({});
    } else if (path == "/write") {
      call->Write("one");
      call->Finish({});
    } else {
      if (path == "/stream") {
        call->Begin();
      }
      call->SetOnCancel([this] {
        MutexLock cancel_lock(mutex_);
        ++cancelled_;
      });
      held_.push_back(call);
    }
  }

  // Takes as many held calls as soon as the client has made them.
  std::vector<std::shared_ptr<ServerCall>> TakeHeld(TestClient& client, size_t count) {
    EXPECT_TRUE(client.Until([&] { return held() == count; }));
    MutexLock lock(mutex_);
    return std::exchange(held_, {});
  }
  // True.
  bool DropHeld() {
    std::vector<std::shared_ptr<ServerCall>> dropped;  // Destroyed without the lock.
    MutexLock lock(mutex_);
    dropped.swap(held_);
    return true;
  }
  size_t held() {
    MutexLock lock(mutex_);
    return held_.size();
  }
  size_t begun() {
    MutexLock lock(mutex_);
    return begun_;
  }
  int cancelled() {
    MutexLock lock(mutex_);
    return cancelled_;
  }

  // Tasks of /later that have not run.
  int64_t waiting() const { return waiting_.use_count() - 1; }

 private:
  void Later(const std::shared_ptr<ServerCall>& call) {
    const auto task = [call, held = waiting_] { call->Finish({}, call->message()); };
    call->CallLater(std::chrono::milliseconds(std::stoi(call->message())), task);
  }
  static void Count(const std::shared_ptr<ServerCall>& call) {
    const auto left = std::make_shared<int>(std::stoi(call->message()));
    // The call outlives its callbacks.
    const auto next = [raw = call.get(), left] {
      if (*left == 0) {
        raw->Finish({});
      } else {
        raw->Write(std::to_string((*left)--));
      }
    };
    call->SetOnWritten(next);
    call->Begin();
    next();
  }

  Mutex mutex_;
  size_t begun_ RNICD_GUARDED_BY(mutex_) = 0;
  int cancelled_ RNICD_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<ServerCall>> held_ RNICD_GUARDED_BY(mutex_);
  const std::shared_ptr<int> waiting_ = std::make_shared<int>(0);
};

// What TestHandler says of a refused call.
inline std::string CodeOf(Refusal::Reason reason) { return std::to_string(100 + reason); }

// Keeps `handler`.
template <typename Handler>
CallHandler CallsTo(std::shared_ptr<Handler> handler) {
  return [handler = std::move(handler)](const std::shared_ptr<ServerCall>& call) { handler->OnCall(call); };
}

// What a client sends first.
inline constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// True once the server has hung up on a client that sends nothing more.
inline bool HangsUp(const UniqueSocket& socket) {
  std::array<char, 4096> buffer;
  while (WaitForSocket(socket.get(), kReadable, kTimeout)) {
    const int64_t size = ReadSocket(socket.get(), buffer, /*refuses_descriptors=*/true);
    if (size <= 0 && size != kTryLater) {
      return true;
    }
  }
  return false;
}

// A server whose budget is as it was when the test ends.
class ServerTest : public testing::Test {
 protected:
  // Whether time passes by itself.
  enum class Time : uint8_t { kPasses, kStands };
  explicit ServerTest(const Limits& limits = {}, Time time = Time::kPasses)
      : server_(*Server::Start(1, limits,
                               time == Time::kPasses ? static_cast<const Clock&>(steady_clock_) : manual_clock_)) {}
  ~ServerTest() override {
    // What the test's calls cost is returned, also by calls that it did not take from the handler.
    if (server_ != nullptr) {
      EXPECT_TRUE(Eventually([&] { return handler_->DropHeld() && server_->used_bytes() == 0; }))
          << server_->used_bytes();
    }
  }

  // The client's end of a connection that is served.
  UniqueSocket Connect() { return Connect(CallsTo(handler_)); }
  UniqueSocket Connect(CallHandler handler) {
    auto [ours, theirs] = MakeSocketPair();
    connection_ = server_->Serve({.socket = std::make_shared<const UniqueSocket>(std::move(ours)), .owner = "owner"},
                                 std::move(handler));
    return std::move(theirs);
  }
  static void ExpectEchoes(TestClient& client) {
    EXPECT_THAT(client.Result("/echo", "still there").Messages(), testing::ElementsAre("still there"));
  }

  const SteadyClock steady_clock_;
  ManualClock manual_clock_;
  const std::shared_ptr<TestHandler> handler_ = std::make_shared<TestHandler>();
  std::unique_ptr<Server> server_;
  // The last one.
  std::shared_ptr<Connection> connection_;
};

// A server for which time passes only when the test says so.
class ServerTimeTest : public ServerTest {
 protected:
  ServerTimeTest() : ServerTest({}, Time::kStands) {}

  // Returns when the server has done what is due then, and before that all that it had to do before.
  void Pass(std::chrono::milliseconds time) {
    EventLoop& loop = *server_->loops()[0];
    RunOn(loop, [&] {
      manual_clock_.Advance(time);
      loop.RunDue();
    });
  }
};

}  // namespace rnicd::rpc
