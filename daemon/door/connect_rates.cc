#include "daemon/door/connect_rates.h"

#include <algorithm>

namespace rnicd::door {
namespace {

// A table of this size is not worth pruning.
constexpr size_t kRatesMin = 64;

}  // namespace

bool ConnectRates::IsTooFast(const std::string& owner) {
  if (rate_.per_second == 0) {
    return false;
  }
  // Owners come and go with their containers. One that has been quiet is forgotten when the table has doubled.
  if (rates_.size() >= rates_to_prune_) {
    std::erase_if(rates_, [](const auto& entry) { return entry.second->idle(); });
    rates_to_prune_ = 2 * rates_.size() + kRatesMin;
  }
  std::unique_ptr<core::RateLimiter>& rate = rates_[owner];
  if (rate == nullptr) {
    rate = std::make_unique<core::RateLimiter>(clock_, rate_);
  }
  return rate->Take().has_value();
}

std::chrono::milliseconds ConnectBackoff::Left(int32_t pid, Instant now) const {
  const auto found = entries_.find(pid);
  return found != entries_.end() && now < found->second.until
             ? std::chrono::ceil<std::chrono::milliseconds>(found->second.until - now)
             : std::chrono::milliseconds(0);
}

void ConnectBackoff::Refused(int32_t pid, Instant now) {
  if (pid == 0) {
    return;
  }
  const auto is_over = [now](const auto& entry) { return now >= entry.second.until + kLongest; };
  if (entries_.size() >= kEntriesMax) {
    std::erase_if(entries_, is_over);
  }
  const auto found = entries_.find(pid);
  if (found == entries_.end() || is_over(*found)) {
    if (entries_.size() < kEntriesMax) {
      entries_[pid] = {.until = now + kFirst, .period = kFirst};
    }
    return;
  }
  Entry& entry = found->second;
  entry.period = std::min(2 * entry.period, kLongest);
  entry.until = now + entry.period;
}

}  // namespace rnicd::door
