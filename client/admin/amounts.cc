#include "client/admin/amounts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/status.h"

namespace rnicd::inline client {
namespace {

absl::Status IsNot(std::string_view text, std::string_view expected) {
  return absl::InvalidArgumentError("'" + std::string(text) + "' is not " + std::string(expected));
}

}  // namespace

std::optional<uint64_t> ParseAmount(std::string_view text, std::span<const AmountUnit> units) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) {
    return std::nullopt;
  }
  const std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  for (const AmountUnit& unit : units) {
    if (suffix == unit.suffix && number <= std::numeric_limits<uint64_t>::max() / unit.factor) {
      return number * unit.factor;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> ParseSize(std::string_view text) { return ParseAmount(text, kSizeUnits); }

std::optional<uint64_t> ParseNumber(std::string_view text, uint64_t max) {
  const std::optional<uint64_t> number = ParseAmount(text, std::array{AmountUnit{}});
  return number.has_value() && *number <= max ? number : std::nullopt;
}

absl::Status LimitSetter::Set(std::string_view name, std::string_view value) {
  const google::protobuf::FieldDescriptor* const field =
      v1::ResourceLimits::descriptor()->FindFieldByName(std::string(name));
  if (field == nullptr) {
    return IsNot(name, "a limit of policy.proto");
  }
  if (!names_.emplace(name).second) {
    return absl::InvalidArgumentError(std::string(name) + " is given twice");
  }
  const bool in_bytes = name.ends_with("_bytes");
  const std::optional<uint64_t> amount =
      in_bytes ? ParseSize(value) : ParseNumber(value, std::numeric_limits<uint64_t>::max());
  if (!amount.has_value()) {
    return IsNot(value, in_bytes ? "a size such as 64KiB, 64MiB or 1GiB" : "a number");
  }
  v1::ResourceLimits::GetReflection()->SetUInt64(&limits_, field, *amount);
  return absl::OkStatus();
}

absl::Status LimitSetter::SetList(std::string_view list) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return IsNot(item, "a limit and its value, such as regions=100");
    }
    RNICD_RETURN_IF_ERROR(Set(item.substr(0, equals), item.substr(equals + 1)));
  }
  return absl::OkStatus();
}

}  // namespace rnicd::inline client
