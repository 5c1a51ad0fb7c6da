#pragma once

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace rnicd::inline client {

// One descriptor for a program's own loop: readable when a connection has bytes, and when it was signalled.
// Threads: one at a time.
class EventDescriptor {
 public:
  // Made on first use, for this socket. Errors: transport failures. On Windows always.
  absl::StatusOr<int> Open(int socket);
  void Signal();
  // Takes the signal back. An ended connection is not looked at any more: it would be readable for ever.
  void Clear(bool ended);

 private:
  UniqueFd epoll_;
  UniqueFd signal_;
  int socket_ = -1;
};

}  // namespace rnicd::inline client
