#include "client/ctl/line/option_values.h"
#include "client/admin/amounts.h"

#include <charconv>
#include <optional>
#include <string>

#include "client/ctl/line/units.h"

namespace rnicd::ctl {

absl::StatusOr<uint64_t> NumberOr(const CommandLine& line, std::string_view option, uint64_t otherwise, uint64_t min,
                                  uint64_t max) {
  const std::optional<std::string> value = line.Value(option);
  if (!value.has_value()) {
    return otherwise;
  }
  const std::optional<uint64_t> number = ParseNumber(*value, max);
  if (!number.has_value() || *number < min) {
    return BadValue(option, *value, "a number from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return *number;
}

absl::StatusOr<std::chrono::milliseconds> DurationOr(const CommandLine& line, std::string_view option,
                                                     std::chrono::milliseconds otherwise, std::chrono::milliseconds min,
                                                     std::chrono::milliseconds max) {
  const std::optional<std::string> value = line.Value(option);
  if (!value.has_value()) {
    return otherwise;
  }
  const std::optional<std::chrono::milliseconds> duration = ParseDuration(*value, max);
  if (!duration.has_value() || *duration < min) {
    const auto name = [](std::chrono::milliseconds time) {
      return FormatMilliseconds(static_cast<uint64_t>(time.count()));
    };
    return BadValue(option, *value, "a duration such as 500ms, 30s, 5m or 1h, from " + name(min) + " to " + name(max));
  }
  return *duration;
}

absl::StatusOr<uint64_t> ParseId(std::string_view text, std::string_view what) {
  const bool hexadecimal = text.starts_with("0x");
  const std::string_view digits = hexadecimal ? text.substr(2) : text;
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return UsageError("'" + std::string(text) + "' is not the id of " + std::string(what));
  }
  return id;
}

}  // namespace rnicd::ctl
