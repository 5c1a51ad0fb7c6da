#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace rnicd::audit {

// An allowance of bytes that is renewed at a rate, and can be saved up for kSaved.
// Threads: one at a time.
class ByteBudget {
 public:
  static constexpr std::chrono::seconds kSaved{64};

  // 0 bytes a second: no limit.
  explicit ByteBudget(uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  // Takes the bytes, or returns false and takes nothing when that many are not left.
  bool Take(size_t bytes, Instant now);
  // Takes the bytes even if they are not left; what is missing is paid before anything else can be taken.
  void Charge(size_t bytes, Instant now);
  // True while anything is left.
  bool HasRoom(Instant now) const { return paid_at_ < now + kSaved; }
  // True when everything taken has been renewed: a new budget would allow as much.
  bool IsFull(Instant now) const { return paid_at_ <= now; }

 private:
  // Time at which everything taken, and these bytes too, would have been renewed.
  Instant PaidAtWith(size_t bytes, Instant now) const;

  const uint64_t bytes_per_second_;
  Instant paid_at_;
};

}  // namespace rnicd::audit
