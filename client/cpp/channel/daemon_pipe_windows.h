#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "rnicd/v1/pipe_channel.pb.h"

namespace rnicd::inline client {

// This process's end of a pipe of the daemon, which lets the daemon identify the process and not act as it.
// Threads: one.
class DaemonPipe {
 public:
  // Errors: kUnavailable when no daemon has a pipe of this name, or this user may not open it; kDeadlineExceeded.
  static absl::StatusOr<DaemonPipe> Open(const std::string& name, Instant deadline);

  // Sends a request and waits for its reply. Errors: the daemon's; kUnavailable when it hung up, kDeadlineExceeded,
  // kInternal for a reply that is none. After an error the pipe is of no more use.
  absl::StatusOr<v1::PipeReply> Ask(const v1::PipeRequest& request, Instant deadline);

 private:
  DaemonPipe(UniqueFd pipe, UniqueFd event) : pipe_(std::move(pipe)), event_(std::move(event)) {}

  UniqueFd pipe_;
  // Set when an operation on the pipe has ended.
  UniqueFd event_;
};

}  // namespace rnicd::inline client
