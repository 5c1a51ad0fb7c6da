#pragma once

#include <nghttp2/nghttp2.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "wire/http2/message.h"
#include "wire/http2/status.h"

namespace rnicd::inline client {

// One call: what is sent, and what has come.
class ClientCall {
 public:
  // `request` is a serialized message.
  explicit ClientCall(std::string_view request);

  // The oldest message that has come and was not taken.
  std::optional<std::string> TakeMessage() { return received_.Next(); }
  bool has_message() const { return received_.has_next(); }
  // True when nothing follows.
  bool over() const { return over_; }
  // How it ended: the connection failed, or the daemon's status.
  const absl::Status& failure() const { return failure_; }
  const http2::Status& status() const { return status_; }

  // Notified when something has come.
  ConditionVariable changed;

 private:
  friend class Http2Client;
  void End(absl::Status failure);

  const std::string request_;
  size_t sent_ = 0;
  http2::MessageReader received_;
  http2::StatusReader trailers_;
  int http_status_ = 0;
  http2::Status status_;
  absl::Status failure_;
  bool over_ = false;
};

// The client's end of HTTP/2 on one connection, by nghttp2, without a socket: bytes in, what they mean for calls, and
// bytes out.
// Lifetime: a call outlives its end, or Cancel.
// Threads:  one at a time.
// Source:   RFC 9113; gRPC over HTTP2.
class Http2Client {
 public:
  // `authorization` is a header field of each call, unless empty.
  explicit Http2Client(std::string authorization);

  // Sends the call; `timeout` is what the daemon is told, none for a call without end. A call that cannot be sent ends.
  // Returns its number.
  int32_t Begin(const char* path, std::optional<std::chrono::nanoseconds> timeout, ClientCall& call);
  // Nobody waits for the call any more.
  void Cancel(int32_t number);
  // Takes what has come from the daemon. False when it breaks the protocol.
  bool Receive(std::string_view bytes);
  // Bytes for the daemon, until the next call; empty when there are none for now.
  std::string_view NextOutput();
  // False when the daemon has said that it takes no more calls on this connection.
  bool takes_calls() const;
  // True when it has closed the connection in good order.
  bool finished() const;
  // Ends all calls.
  void End(const absl::Status& failure);

 private:
  struct Delete {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  static Http2Client& Self(void* user_data) { return *static_cast<Http2Client*>(user_data); }
  static nghttp2_session_callbacks* NewCallbacks();
  static nghttp2_session* NewSession(Http2Client* self);
  static ssize_t ReadRequest(nghttp2_session* session, int32_t number, uint8_t* buffer, size_t size, uint32_t* flags,
                             nghttp2_data_source* source, void* self);

  // Null when nobody waits for it.
  ClientCall* Find(int32_t number);
  void OnHeader(int32_t number, std::string_view name, std::string_view value);
  void OnData(int32_t number, std::string_view bytes);
  void OnClose(int32_t number, uint32_t error_code);

  const std::string authorization_;
  std::map<int32_t, ClientCall*> calls_;
  std::unique_ptr<nghttp2_session, Delete> session_;
};

}  // namespace rnicd::inline client
