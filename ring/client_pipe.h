#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace rnicd::ring {

// A pipe in which the daemon announces something to a client: a pair of sockets, on which only the daemon sends. Not an
// eventfd, whose one open file both would share: a client could make the daemon's writes block. Not a pipe of the
// kernel's either: a reader holds its lock while the bytes are copied, so a client that reads into memory whose pages
// never arrive, such as a file of its own FUSE server, blocks even a non-blocking writer. On Windows an event takes its
// place, which the client may only wait for.
// Threads: safe.
class ClientPipe {
 public:
  // Errors: RINGS_UNAVAILABLE.
  static absl::StatusOr<ClientPipe> Create();

  // The client's end; once.
  UniqueFd TakeReadEnd() { return std::move(read_); }
  // Sends a byte, or sets the event; never blocks. A full pipe is enough of a notification.
  void Announce() const;

 private:
  UniqueFd read_;
  UniqueFd write_;
};

}  // namespace rnicd::ring
