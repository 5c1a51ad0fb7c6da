#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "rnicd/v1/policy.pb.h"

// Amounts as people write them on command lines.
namespace rnicd::inline client {

// A suffix of a number, and its factor.
struct AmountUnit {
  std::string_view suffix;
  uint64_t factor = 1;
};

inline constexpr std::array kSizeUnits = {AmountUnit{"", 1},
                                          AmountUnit{"B", 1},
                                          AmountUnit{"KiB", 1ull << 10},
                                          AmountUnit{"MiB", 1ull << 20},
                                          AmountUnit{"GiB", 1ull << 30},
                                          AmountUnit{"TiB", 1ull << 40}};

// Parses a whole number without sign, directly followed by one of the units. Empty for any other text and above 2^64 -
// 1.
std::optional<uint64_t> ParseAmount(std::string_view text, std::span<const AmountUnit> units);

// Parses "4096", "64KiB", "64MiB", "1GiB", "2TiB" to bytes. Empty for any other text and above 2^64 - 1.
std::optional<uint64_t> ParseSize(std::string_view text);

// Parses a whole number without sign; empty for any other text and above `max`.
std::optional<uint64_t> ParseNumber(std::string_view text, uint64_t max);

// Sets limits by their names in policy.proto, each at most once; limits in bytes accept sizes.
// Errors: kInvalidArgument, with text for people: "'pages' is not a limit of policy.proto".
class LimitSetter {
 public:
  // The limits must outlive the setter.
  explicit LimitSetter(v1::ResourceLimits& limits) : limits_(limits) {}

  absl::Status Set(std::string_view name, std::string_view value);
  // Sets limits from "regions=100,memory_bytes=64MiB"; does nothing for an empty text.
  absl::Status SetList(std::string_view list);

 private:
  v1::ResourceLimits& limits_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace rnicd::inline client
