#include "daemon/rings/cpu_yield.h"

namespace rnicd::rings {
namespace {

// Collects outcomes: leaving the processor and coming back takes some microseconds.
constexpr std::chrono::microseconds kWaitMin{20};
// More than clients need to read their outcomes and submit again.
constexpr std::chrono::microseconds kLong{500};
constexpr int kRestFactor = 20;

}  // namespace

void CpuYield::Run(Instant now) {
  if (!waiting_since_.has_value() || now - *waiting_since_ < kWaitMin || now < not_before_) {
    return;
  }
  waiting_since_.reset();
  const Instant left = clock_.Now();
  yield_();
  const Instant back = clock_.Now();
  if (back - left > kLong) {
    not_before_ = back + kRestFactor * (back - left);
  }
}

}  // namespace rnicd::rings
