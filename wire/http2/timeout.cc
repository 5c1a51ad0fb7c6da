#include "wire/http2/timeout.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace rnicd::http2 {
namespace {

constexpr size_t kTimeoutDigitsMax = 8;
constexpr int64_t kTimeoutAmountMax = 99'999'999;
constexpr std::string_view kUnits = "numSMH";
constexpr std::array<std::chrono::nanoseconds, kUnits.size()> kUnitTimes = {
    std::chrono::nanoseconds(1), std::chrono::microseconds(1), std::chrono::milliseconds(1),
    std::chrono::seconds(1),     std::chrono::minutes(1),      std::chrono::hours(1)};

}  // namespace

std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text) {
  if (text.size() < 2 || text.size() > kTimeoutDigitsMax + 1) {
    return std::nullopt;
  }
  const size_t unit = kUnits.find(text.back());
  int64_t amount = 0;
  for (const char digit : text.substr(0, text.size() - 1)) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(digit))) {
      return std::nullopt;
    }
    amount = amount * 10 + (digit - '0');
  }
  if (unit == std::string_view::npos) {
    return std::nullopt;
  }
  // 99,999,999 hours do not fit into 64 bits of nanoseconds; a century is as good as for ever.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(876'000);
  return amount > kLongest / kUnitTimes[unit] ? kLongest : amount * kUnitTimes[unit];
}

std::string TimeoutText(std::chrono::nanoseconds timeout) {
  const std::chrono::nanoseconds granted = std::max(timeout, std::chrono::nanoseconds(1));
  size_t unit = 0;
  int64_t amount = granted.count();
  // 64 bits of nanoseconds are less than 3 million hours.
  while (amount > kTimeoutAmountMax) {
    ++unit;
    const bool rounds = granted % kUnitTimes[unit] != std::chrono::nanoseconds(0);
    amount = granted / kUnitTimes[unit] + (rounds ? 1 : 0);
  }
  return absl::StrCat(amount, std::string(1, kUnits[unit]));
}

}  // namespace rnicd::http2
