#include "daemon/rpc/socket/buffered_socket.h"

namespace rnicd::rpc {

bool BufferedSocket::Open(EventLoop::OnReady on_ready) {
  watch_ = loop_.Watch(socket_->get(), interest_, std::move(on_ready));
  return watch_ != 0;
}

void BufferedSocket::Close() {
  loop_.Forget(watch_);
  ShutDownSocket(socket_->get());
  socket_.reset();
}

bool BufferedSocket::Send(std::string_view bytes) {
  bool some = false;
  while (!bytes.empty()) {
    const int64_t sent = SendSocket(socket_->get(), bytes);
    if (sent == kTryLater) {
      kept_ = bytes;
      break;
    }
    if (sent < 0) {
      failed_ = true;
      break;
    }
    some = true;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return some;
}

void BufferedSocket::WaitFor(bool reads) {
  const uint32_t interest = (reads ? kReadable : 0U) | (blocked() ? kWritable : 0U);
  if (interest != interest_) {
    interest_ = interest;
    loop_.Change(watch_, interest_);
  }
}

}  // namespace rnicd::rpc
