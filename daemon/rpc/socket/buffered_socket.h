#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/system/socket_io.h"
#include "base/system/unique_socket.h"
#include "daemon/rpc/socket/event_loop.h"

namespace rnicd::rpc {

// A client's socket on a loop, and the bytes that it did not take.
// Lifetime: closed before it is destroyed, unless it never was opened.
// Threads:  the loop's.
class BufferedSocket {
 public:
  BufferedSocket(EventLoop& loop, std::shared_ptr<const UniqueSocket> socket)
      : loop_(loop), socket_(std::move(socket)) {}

  // Calls `on_ready` when there is something to read. False when the system refuses.
  bool Open(EventLoop::OnReady on_ready);
  // Ends it for both sides, also for those who share it.
  void Close();

  int64_t Read(std::span<char> buffer, bool refuses_descriptors) const {
    return ReadSocket(socket_->get(), buffer, refuses_descriptors);
  }
  // Sends as much as the socket takes and keeps the rest. Returns whether it took any. Only while it is not blocked.
  bool Send(std::string_view bytes);
  // Sends what was kept.
  bool SendKept() { return Send(std::exchange(kept_, {})); }
  // True while it keeps something.
  bool blocked() const { return !kept_.empty(); }
  // True when the client has gone.
  bool failed() const { return failed_; }

  // Waits for the socket to take what is kept, and for bytes to read if `reads`.
  void WaitFor(bool reads);

 private:
  EventLoop& loop_;
  std::shared_ptr<const UniqueSocket> socket_;
  EventLoop::Key watch_ = 0;
  uint32_t interest_ = kReadable;
  std::string kept_;
  bool failed_ = false;
};

}  // namespace rnicd::rpc
