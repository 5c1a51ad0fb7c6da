#pragma once

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "client/ctl/line/units.h"

namespace rnicd::ctl {

// Waits until a duration has passed, SIGINT or SIGTERM arrives, on Windows Ctrl-C or another end of the console, or the
// session ends.
// Lifetime: create it before the first Client: it blocks the two signals, and librnicd's thread must inherit that.
//           Must outlive the Client that reports to OnSessionEnded. Its destructor restores the signals.
// Threads:  OnSessionEnded may be called from any thread.
class Hold {
 public:
  Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold();

  // `why` is not ok.
  void OnSessionEnded(const absl::Status& why);
  // OK when the duration has passed or a signal arrived, during this call or before; otherwise why the session ended.
  absl::Status Wait(const HoldTime& time);
  // Waits without a session, whose end is forgotten. False when a signal arrived, during this call or before.
  bool Pause(std::chrono::milliseconds time);

 private:
  // What the system wakes it by.
  struct Wakers;

  const std::unique_ptr<Wakers> wakers_;
  Mutex mutex_;
  absl::Status end_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::ctl
