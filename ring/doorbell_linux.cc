#include <sys/eventfd.h>

#include <cerrno>

#include "base/errno_status.h"
#include "base/status.h"
#include "ring/doorbell.h"

namespace rnicd::ring {

absl::StatusOr<UniqueFd> MakeDoorbell() {
  UniqueFd doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell.valid()) {
    return MakeErrorWithDetail(ErrorReason::RINGS_UNAVAILABLE, ErrnoDetail("eventfd", errno));
  }
  return doorbell;
}

// A full counter rings as well.
void RingDoorbell(int doorbell) { (void)eventfd_write(doorbell, 1); }

}  // namespace rnicd::ring
