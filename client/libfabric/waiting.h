#pragma once

#include <poll.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <chrono>

namespace rnicd::fi {

// What event queues and completion queues share. A wait object is a descriptor, or none.

inline bool IsWaitObject(fi_wait_obj wait) {
  return wait == FI_WAIT_NONE || wait == FI_WAIT_UNSPEC || wait == FI_WAIT_FD;
}

// fi_control of a queue with that descriptor; -1: none.
inline int ControlWaitObject(int descriptor, int command, void* argument) {
  switch (command) {
    case FI_GETWAIT:
      if (descriptor < 0) {
        return -FI_ENODATA;
      }
      *static_cast<int*>(argument) = descriptor;
      return 0;
    case FI_GETWAITOBJ:
      *static_cast<fi_wait_obj*>(argument) = descriptor < 0 ? FI_WAIT_NONE : FI_WAIT_FD;
      return 0;
    default:
      return -FI_ENOSYS;
  }
}

// How long a call may wait: a negative time is for ever.
class Deadline {
 public:
  explicit Deadline(int timeout_ms)
      : for_ever_(timeout_ms < 0), end_(Clock::now() + std::chrono::milliseconds(std::max(timeout_ms, 0))) {}

  // Waits until the descriptor is readable. Result of poll: 0 when the time is up.
  int Wait(int descriptor) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    pollfd ready = {.fd = descriptor, .events = POLLIN, .revents = 0};
    return poll(&ready, 1, for_ever_ ? -1 : static_cast<int>(std::max<decltype(left)>(left, 0)));
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool for_ever_;
  Clock::time_point end_;
};

}  // namespace rnicd::fi
