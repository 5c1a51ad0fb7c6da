#include "daemon/core/tenant/rate_limiter.h"

#include <algorithm>

namespace rnicd::core {
namespace {

constexpr int64_t kUnitsPerNanosecond = 16;
constexpr int64_t kUnitsPerSecond = 1'000'000'000 * kUnitsPerNanosecond;
// Years; adding twice as much to any time does not overflow.
constexpr int64_t kMostAhead = int64_t{1} << 60;

}  // namespace

int64_t RateLimiter::Now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.Now() - made_).count() * kUnitsPerNanosecond;
}

// The cost of one action is rounded up, so that a rate is never exceeded.
void RateLimiter::Set(const Rate& rate) {
  const auto per_second = static_cast<int64_t>(rate.per_second);
  const uint64_t burst = rate.burst == 0 ? rate.per_second : rate.burst;
  const int64_t cost = per_second == 0 ? 0 : (kUnitsPerSecond + per_second - 1) / per_second;
  const bool is_huge = cost != 0 && burst > static_cast<uint64_t>(kMostAhead / cost);
  const int64_t ahead = is_huge ? kMostAhead : cost * static_cast<int64_t>(burst);
  // Never the new price with an old, larger burst.
  ahead_.store(std::min(ahead, ahead_.load()));
  cost_.store(cost);
  ahead_.store(ahead);
  per_second_.store(rate.per_second);
  const int64_t latest = Now() + ahead;
  int64_t busy_until = busy_until_.load();
  while (busy_until > latest && !busy_until_.compare_exchange_weak(busy_until, latest)) {
  }
}

// Each admitted call moves the time until which the limiter is busy; the burst limits how far ahead that may be.
std::optional<std::chrono::nanoseconds> RateLimiter::Take() {
  const int64_t cost = cost_.load();
  if (cost == 0) {
    return std::nullopt;
  }
  const int64_t now = Now();
  int64_t busy_until = busy_until_.load();
  int64_t next = 0;
  do {
    next = std::max(busy_until, now) + cost;
    const int64_t too_far = next - now - ahead_.load();
    if (too_far > 0) {
      return std::chrono::nanoseconds((too_far + kUnitsPerNanosecond - 1) / kUnitsPerNanosecond);
    }
  } while (!busy_until_.compare_exchange_weak(busy_until, next));
  return std::nullopt;
}

void RateLimiter::Count(uint64_t actions) {
  const int64_t cost = cost_.load();
  if (cost == 0 || actions == 0) {
    return;
  }
  const int64_t now = Now();
  const int64_t ahead = ahead_.load();
  const int64_t owed = std::max(ahead, kUnitsPerSecond);
  const int64_t most = ahead + owed;
  const int64_t added = actions < static_cast<uint64_t>(most / cost) ? cost * static_cast<int64_t>(actions) : most;
  int64_t busy_until = busy_until_.load();
  int64_t next = 0;
  do {
    next = std::max(busy_until, std::min(std::max(busy_until, now) + added, now + most));
  } while (!busy_until_.compare_exchange_weak(busy_until, next));
}

void RateLimiter::Undo() { busy_until_.fetch_sub(cost_.load()); }

bool RateLimiter::idle() const { return busy_until_.load() <= Now(); }

}  // namespace rnicd::core
