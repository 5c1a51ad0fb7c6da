#pragma once

#include <signal.h>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "client/ctl/units.h"

namespace rnicd::ctl {

// Waits until a time is over, SIGINT or SIGTERM comes, or the session ends.
// Lifetime: make it before the first gRPC object: it blocks the two signals, and the threads of gRPC must inherit that.
//           Must outlive the Client that reports to OnSessionEnded. Its destructor restores the signals.
// Threads:  OnSessionEnded may come from any thread.
class Hold {
 public:
  Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold();

  // `why` is not ok.
  void OnSessionEnded(const absl::Status& why);
  // Ok when the time is over or a signal came, this one or one before; otherwise why the session ended.
  absl::Status Wait(const HoldTime& time);

 private:
  sigset_t old_signals_;
  UniqueFd signals_;
  UniqueFd session_ended_;
  Mutex mutex_;
  absl::Status end_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::ctl
