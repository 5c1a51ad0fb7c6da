#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "base/system/unique_socket.h"
#include "daemon/rpc/calls.h"
#include "daemon/rpc/socket/buffered_socket.h"
#include "daemon/rpc/socket/event_loop.h"

namespace rnicd::rpc {

// One client's socket and its HTTP/2 session: moves bytes between them in turns with other connections, and ends when
// the client leaves, breaks the protocol, takes too long, or is told to.
// Lifetime: shared; its loop keeps it until it has ended.
// Threads:  Open and Close from any; everything else on the loop's.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  struct Options {
    Calls::Options calls;
    // True when the client cannot send descriptors. Otherwise each read looks for them first, and a connection that
    // brings some ends: whoever receives one may be blocked by it.
    bool refuses_descriptors = false;
    // Called once, on the loop's thread, when the connection has ended and all its calls are cancelled.
    std::function<void(const Connection&)> on_end;
  };

  Connection(std::shared_ptr<EventLoop> loop, std::shared_ptr<const UniqueSocket> socket, Options options);

  // Begins to serve.
  void Open();
  // Ends the connection after its last responses, or when they take too long.
  void Close();

  // The most that its calls took at a time.
  uint64_t peak_bytes() const { return options_.calls.budget->peak(); }
  EventLoop& loop() const { return *loop_; }

  // Runs `change`, then sends what there is to send, unless a caller further up does it anyway.
  void Run(absl::FunctionRef<void(Calls&)> change);

 private:
  // Bytes read from the socket before others have their turn, and gathered before they are sent.
  static constexpr size_t kBytesAtOnce = 64 << 10;

  void OnReady(uint32_t events);
  // False when the client has gone.
  bool ReadOnce();
  void Flush();
  // Bytes that are ready to be sent, at most about kBytesAtOnce. Empty when there are none.
  std::string& Gather();
  // Reports what the socket took. False when it takes no more for now.
  bool OnSent(bool some);
  void PostNextTurn();
  void UpdateInterest();
  void ScheduleCheck();
  // Ends what has taken too long.
  void CheckTimeouts();
  bool IsOver() const;
  void BeginClose();
  void End();

  const std::shared_ptr<EventLoop> loop_;
  const Options options_;
  BufferedSocket socket_;
  // From Open on.
  std::unique_ptr<Calls> calls_;
  const Instant opened_;
  EventLoop::Timer check_;
  EventLoop::Timer close_timer_;
  bool next_turn_posted_ = false;
  // True inside a function that ends with Flush.
  bool busy_ = false;
  bool ended_ = false;
};

}  // namespace rnicd::rpc
