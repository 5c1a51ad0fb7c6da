#include "daemon/door/connect_rates.h"

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

}  // namespace rnicd::door
