#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"

namespace rnicd::app {

// Tells systemd how the daemon is, by datagrams to the socket that it named in the environment. Without one it does
// nothing. It connects when it is made, because the daemon's sandbox forbids that later, and no send waits.
// Threads: safe. Source: sd_notify(3).
class ServiceManager {
 public:
  struct Options {
    // $NOTIFY_SOCKET: a path, or an abstract name behind '@'; empty where nobody listens.
    std::string socket;
    // Half of $WATCHDOG_USEC: the time between two signs of life; 0 where nobody watches.
    std::chrono::microseconds alive_every{0};
  };

  static Options FromEnvironment();
  explicit ServiceManager(const Options& options);

  // The daemon serves, from now on or again. `status` is for people, one line.
  void Serves(std::string_view status) { SendState("READY=1", status); }
  void Reloads(Instant now);
  void Stops() { SendState("STOPPING=1", "stops"); }
  void SetStatus(std::string_view status);
  // To be called every second or more often, while the daemon does not hang: the daemon is killed where it is not.
  // `now` is CLOCK_MONOTONIC's.
  void StaysAlive(Instant now);

 private:
  void SendState(std::string_view state, std::string_view status);
  // False when the manager's queue is full.
  bool Send(std::string_view message) const;

  const std::chrono::microseconds alive_every_;
  const UniqueFd socket_;
  Mutex mutex_;
  // The last state, while the manager's queue has had no room for it; empty when there is none.
  std::string unsent_ RNICD_GUARDED_BY(mutex_);
  Instant last_alive_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::app
