#pragma once

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "base/clock.h"

namespace rnicd::inline client {

// Decides whether OpenSession is asked again, over another connection: an older generation of the daemon refuses it
// with DAEMON_HANDED_OVER, also while this process has sessions there, or ends before it answers. No other call is
// repeated.
class OpenAttempts {
 public:
  explicit OpenAttempts(Instant deadline) : deadline_(deadline) {}

  // The pause before the next attempt; none when `failure` is the caller's. `unanswered`: the daemon closed the
  // connection.
  std::optional<std::chrono::milliseconds> PauseAfter(const absl::Status& failure, bool unanswered, Instant now);

 private:
  const Instant deadline_;
  int repeated_ = 0;
};

}  // namespace rnicd::inline client
