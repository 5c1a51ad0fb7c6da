#include "client/ctl/units.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <utility>

namespace rnicd::ctl {
namespace {

struct Unit {
  std::string_view suffix;
  uint64_t factor;
};

constexpr std::array kSizeUnits = {Unit{"", 1},
                                   Unit{"B", 1},
                                   Unit{"KiB", 1ull << 10},
                                   Unit{"MiB", 1ull << 20},
                                   Unit{"GiB", 1ull << 30},
                                   Unit{"TiB", 1ull << 40}};
constexpr std::array kDurationUnits = {Unit{"ms", 1}, Unit{"s", 1'000}, Unit{"m", 60'000}, Unit{"h", 3'600'000},
                                       Unit{"d", 24 * 3'600'000}};
constexpr std::chrono::milliseconds kYear = std::chrono::days(365);

// A whole number directly followed by one of the units.
template <size_t count>
std::optional<uint64_t> ParseWithUnit(std::string_view text, const std::array<Unit, count>& units) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) {
    return std::nullopt;
  }
  const std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (suffix == unit.suffix && number <= std::numeric_limits<uint64_t>::max() / unit.factor) {
      return number * unit.factor;
    }
  }
  return std::nullopt;
}

template <typename... Values>
std::string Format(const char* format, Values... values) {
  std::array<char, 64> text;
  const int length = std::snprintf(text.data(), text.size(), format, values...);
  return std::string(text.data(), static_cast<size_t>(length));
}

}  // namespace

std::optional<uint64_t> ParseSize(std::string_view text) { return ParseWithUnit(text, kSizeUnits); }

std::optional<uint64_t> ParseNumber(std::string_view text, uint64_t max) {
  const std::optional<uint64_t> number = ParseWithUnit(text, std::array{Unit{"", 1}});
  return number.has_value() && *number <= max ? number : std::nullopt;
}

std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text, std::chrono::milliseconds max) {
  if (text == "0") {
    return std::chrono::milliseconds(0);
  }
  const std::optional<uint64_t> milliseconds = ParseWithUnit(text, kDurationUnits);
  if (!milliseconds.has_value() || *milliseconds > static_cast<uint64_t>(max.count())) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(*milliseconds);
}

std::optional<HoldTime> ParseHoldTime(std::string_view text) {
  if (text == "forever") {
    return HoldTime{.forever = true};
  }
  const std::optional<std::chrono::milliseconds> duration = ParseDuration(text, kYear);
  return duration.has_value() ? std::optional(HoldTime{.duration = *duration}) : std::nullopt;
}

std::string FormatBytes(uint64_t bytes) {
  for (auto unit = kSizeUnits.rbegin(); unit->factor > 1; ++unit) {
    if (bytes >= unit->factor) {
      const uint64_t tenths = bytes % unit->factor * 10 / unit->factor;
      return std::to_string(bytes / unit->factor) + (tenths != 0 ? "." + std::to_string(tenths) : "") + " " +
             std::string(unit->suffix);
    }
  }
  return std::to_string(bytes) + " B";
}

std::string FormatLimit(uint64_t bytes) { return bytes == 0 ? "no limit" : FormatBytes(bytes); }

std::string FormatMilliseconds(uint64_t milliseconds) {
  const uint64_t seconds = milliseconds / 1'000;
  if (seconds == 0) {
    return std::to_string(milliseconds) + " ms";
  }
  if (seconds < 60) {
    const uint64_t tenths = milliseconds % 1'000 / 100;
    return std::to_string(seconds) + (tenths != 0 ? "." + std::to_string(tenths) : "") + " s";
  }
  const auto pair = [seconds](uint64_t big, const char* big_name, uint64_t small, const char* small_name) {
    return std::to_string(seconds / big) + big_name + std::to_string(seconds % big / small) + small_name;
  };
  if (seconds < 3'600) {
    return pair(60, " m ", 1, " s");
  }
  return seconds < 86'400 ? pair(3'600, " h ", 60, " m") : pair(86'400, " d ", 3'600, " h");
}

std::string FormatAddress(uint64_t address) { return Format("0x%llx", static_cast<unsigned long long>(address)); }

std::string FormatToken(uint32_t memory_token) { return Format("0x%08x", memory_token); }

}  // namespace rnicd::ctl
