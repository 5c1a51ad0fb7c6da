#pragma once

#include <signal.h>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "client/ctl/units.h"

namespace rnicd::ctl {

// Waits until a duration has passed, SIGINT or SIGTERM arrives, or the session ends.
// Lifetime: create it before the first gRPC object: it blocks the two signals, and gRPC's threads must inherit that.
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

 private:
  sigset_t old_signals_;
  UniqueFd signals_;
  UniqueFd session_ended_;
  Mutex mutex_;
  absl::Status end_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::ctl
