// The least that gRPC on nghttp2 can cost: blocking reads and writes, no limits, no deadlines, no checks.
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/files/unique_fd.h"
#include "tests/bench/bare_echo.h"

namespace rnicd::bench {
namespace {

// Bodies of the open calls: each is sent back as it came.
struct Body {
  std::string bytes;
  size_t sent = 0;
};
using Bodies = std::unordered_map<int32_t, Body>;

Bodies& BodiesOf(void* user_data) { return *static_cast<Bodies*>(user_data); }

nghttp2_nv Field(std::string_view name, std::string_view value) {
  return {.name = reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          .value = reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = NGHTTP2_NV_FLAG_NONE};
}

int OnDataChunk(nghttp2_session* /*session*/, uint8_t /*flags*/, int32_t stream_id, const uint8_t* bytes, size_t size,
                void* user_data) {
  BodiesOf(user_data)[stream_id].bytes.append(reinterpret_cast<const char*>(bytes), size);
  return 0;
}

ssize_t ReadBody(nghttp2_session* session, int32_t stream_id, uint8_t* buffer, size_t size, uint32_t* flags,
                 nghttp2_data_source* /*source*/, void* user_data) {
  Body& body = BodiesOf(user_data)[stream_id];
  const size_t taken = std::min(size, body.bytes.size() - body.sent);
  std::copy_n(body.bytes.data() + body.sent, taken, buffer);
  body.sent += taken;
  if (body.sent == body.bytes.size()) {
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    const nghttp2_nv trailer = Field("grpc-status", "0");
    nghttp2_submit_trailer(session, stream_id, &trailer, 1);
  }
  return static_cast<ssize_t>(taken);
}

int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* /*user_data*/) {
  if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
      (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
    const std::array<nghttp2_nv, 2> headers = {Field(":status", "200"), Field("content-type", "application/grpc")};
    const nghttp2_data_provider body = {.source = {.ptr = nullptr}, .read_callback = ReadBody};
    nghttp2_submit_response(session, frame->hd.stream_id, headers.data(), headers.size(), &body);
  }
  return 0;
}

int OnStreamClose(nghttp2_session* /*session*/, int32_t stream_id, uint32_t /*error_code*/, void* user_data) {
  BodiesOf(user_data).erase(stream_id);
  return 0;
}

nghttp2_session* NewSession(Bodies& bodies) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnDataChunk);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClose);
  nghttp2_session* session = nullptr;
  nghttp2_session_server_new(&session, callbacks, &bodies);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, nullptr, 0);
  return session;
}

// Sends all frames that wait, with one system call.
bool Flush(nghttp2_session* session, int socket) {
  static std::string output;
  output.clear();
  const uint8_t* bytes = nullptr;
  for (ssize_t size = 0; (size = nghttp2_session_mem_send(session, &bytes)) > 0;) {
    output.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  }
  return output.empty() ||
         send(socket, output.data(), output.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(output.size());
}

void ServeConnection(int socket) {
  Bodies bodies;
  nghttp2_session* const session = NewSession(bodies);
  std::array<uint8_t, 64 << 10> buffer;
  ssize_t size = 0;
  while (Flush(session, socket) && (size = recv(socket, buffer.data(), buffer.size(), 0)) > 0 &&
         nghttp2_session_mem_recv(session, buffer.data(), static_cast<size_t>(size)) == size) {
  }
  nghttp2_session_del(session);
}

}  // namespace

void ServeHttp2Echo(const std::string& socket_path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener.get(), 16) != 0) {
    return;
  }
  AnnounceBareEcho();
  for (UniqueFd client(accept(listener.get(), nullptr, nullptr)); client.valid();
       client = UniqueFd(accept(listener.get(), nullptr, nullptr))) {
    ServeConnection(client.get());
  }
}

}  // namespace rnicd::bench
