#pragma once

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace rnicd::ring {

// What a client rings to wake the daemon's thread. Only the thread that serves the ring listens to it, and never reads:
// the client has the same descriptor, and could make a reader or a writer wait. On Windows an event. Source:
// eventfd(2). Errors: RINGS_UNAVAILABLE.
absl::StatusOr<UniqueFd> MakeDoorbell();

// Rings it, as a client does.
void RingDoorbell(int doorbell);

}  // namespace rnicd::ring
