#include "daemon/audit/byte_budget.h"

#include <algorithm>

namespace rnicd::audit {

// Rounded up, so that the rate is never exceeded.
Instant ByteBudget::PaidAtWith(size_t bytes, Instant now) const {
  if (bytes_per_second_ == 0) {
    return paid_at_;
  }
  constexpr uint64_t kNanosecondsPerSecond = 1'000'000'000;
  const uint64_t nanoseconds = (bytes * kNanosecondsPerSecond + bytes_per_second_ - 1) / bytes_per_second_;
  return std::max(paid_at_, now) + std::chrono::nanoseconds(nanoseconds);
}

bool ByteBudget::Take(size_t bytes, Instant now) {
  const Instant paid_at = PaidAtWith(bytes, now);
  if (paid_at > now + kSaved) {
    return false;
  }
  paid_at_ = paid_at;
  return true;
}

void ByteBudget::Charge(size_t bytes, Instant now) { paid_at_ = PaidAtWith(bytes, now); }

}  // namespace rnicd::audit
