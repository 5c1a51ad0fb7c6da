#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "daemon/handover/channel.h"
#include "daemon/transport/inbox.h"

namespace rnicd::handover {

// What one side of a hand-over does. All on its thread.
class LinkHandler {
 public:
  virtual ~LinkHandler() = default;
  // Somebody connects. Only with a listener.
  virtual void OnConnect(Channel /*channel*/) {}
  virtual void OnPacket(Packet packet) = 0;
  // The connection is over: the other generation has ended, or this one has refused what it sent.
  virtual void OnEnd() = 0;
  // Five times a second.
  virtual void OnTick() {}
};

// The thread of one side: reads from its channel, and sends.
// Lifetime: the handler outlives it; Stop before destroying.
// Threads:  Post from any, Start and Stop from one, the rest on its own.
class LinkThread {
 public:
  explicit LinkThread(LinkHandler& handler) : handler_(handler) {}
  ~LinkThread() { Stop(); }
  LinkThread(const LinkThread&) = delete;
  LinkThread& operator=(const LinkThread&) = delete;

  // `listener` may be invalid. Errors: kUnavailable, no descriptor is left.
  absl::Status Start(UniqueFd listener, std::optional<Channel> channel);
  void Stop();
  void Post(transport::Inbox::Task task) { inbox_.Post(std::move(task)); }

  bool connected() const { return channel_.has_value(); }
  // The other side does not read.
  bool stalled() const { return channel_.has_value() && channel_->has_unsent(); }
  int listener() const { return listener_.get(); }
  // While it does not listen, connections wait.
  void SetListening(bool listening) { listening_ = listening; }
  void SetChannel(Channel channel) { channel_ = std::move(channel); }
  // Without a connection the packet is dropped.
  void Send(Outgoing packet);
  // Brings the next tick forward to the end of this process; invalid: to now.
  void TickAtEndOf(UniqueFd process);
  // Ends the connection without OnEnd.
  void Disconnect() { channel_.reset(); }

 private:
  void Run();
  void Accept();
  void Read();
  void Check(const absl::Status& status);

  LinkHandler& handler_;
  transport::Inbox inbox_;
  UniqueFd listener_;
  bool listening_ = true;
  std::optional<Channel> channel_;
  Instant next_tick_;
  UniqueFd awaited_;
  // The socket took nothing although it could; it is asked again at the next tick.
  bool rests_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rnicd::handover
