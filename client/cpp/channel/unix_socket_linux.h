#pragma once

#include <sys/types.h>

#include <cerrno>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"

namespace rnicd::inline client {

// Errors: FIELD_OUT_OF_RANGE of socket_dir for a path that does not fit a Unix socket address.
absl::Status CheckUnixAddress(const std::string& path);

// Sets the timeout of the next blocking call on the socket to the time left until the deadline.
void SetTimeouts(int socket_fd, Instant deadline);

// Repeats a system call that a signal interrupted, as long as the deadline allows.
template <typename Call>
auto Uninterrupted(int socket_fd, Instant deadline, const Call& call) {
  for (;;) {
    SetTimeouts(socket_fd, deadline);
    const auto result = call();
    if (result >= 0 || errno != EINTR) {
      return result;
    }
  }
}

// Connects a blocking socket; `type` is SOCK_STREAM or SOCK_SEQPACKET. While the listener's queue is full the kernel
// lets the caller wait, in the order of arrival, and wakes it when there is room.
// Errors: FIELD_OUT_OF_RANGE of socket_dir; transport failures: kUnavailable at once when nothing listens,
//         kDeadlineExceeded when the queue is full until the deadline.
absl::StatusOr<UniqueFd> ConnectUnixSocket(const std::string& path, int type, Instant deadline);

}  // namespace rnicd::inline client
