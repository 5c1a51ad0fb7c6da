#include "client/cpp/rings/adaptive_spin.h"

#include <algorithm>

namespace rnicd::inline client {
namespace {

using std::chrono::nanoseconds;

// A shorter time is a single poll.
constexpr nanoseconds kTimeMin{500};
// A wait of up to this many times the bound would have been short without the sleep: most of it is the wake-up.
constexpr int kShortWait = 4;

}  // namespace

AdaptiveSpin::AdaptiveSpin(nanoseconds bound) : bound_(bound), time_(bound.count()) {}

bool AdaptiveSpin::IsWorthwhile(uint32_t daemon_cpu) const {
  return bound_ > nanoseconds(0) && daemon_cpu != 0 && daemon_cpu != ring::CurrentCpu();
}

void AdaptiveSpin::Record(nanoseconds waited) {
  const nanoseconds time(time_.load(std::memory_order_relaxed));
  const nanoseconds next = waited <= kShortWait * bound_ ? bound_ : std::max(time / 2, std::min(kTimeMin, bound_));
  time_.store(next.count(), std::memory_order_relaxed);
}

}  // namespace rnicd::inline client
