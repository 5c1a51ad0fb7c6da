#include "daemon/app/config/memory_pool_flag.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/units.h"

namespace rnicd::app {
namespace {

constexpr uint64_t kPageSizes[] = {kNdkPageBytes, uint64_t{2} << 20, uint64_t{1} << 30};
constexpr uint64_t kMostBytes = uint64_t{1} << 50;
constexpr uint64_t kMostFiles = 65536;
constexpr uint64_t kLastNumaNode = 1023;

absl::Status Must(std::string_view what, std::string_view part) {
  return absl::InvalidArgumentError("must " + std::string(what) + ", not \"" + std::string(part) + "\"");
}

// A whole text that is a number up to `most`.
std::optional<uint64_t> NumberOf(std::string_view text, uint64_t most) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number <= most ? std::optional(number) : std::nullopt;
}

// "64MiB" in bytes; none for anything else.
std::optional<uint64_t> BytesOf(std::string_view text) {
  static constexpr std::pair<std::string_view, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [unit, shift] : kUnits) {
    if (text.ends_with(unit)) {
      const auto number = NumberOf(text.substr(0, text.size() - unit.size()), kMostBytes >> shift);
      return number.value_or(0) == 0 ? std::nullopt : std::optional(*number << shift);
    }
  }
  return std::nullopt;
}

absl::StatusOr<core::PageChoice> ParsePages(std::string_view text) {
  core::PageChoice pages;
  const auto at = text.find('@');
  const std::optional<uint64_t> bytes = BytesOf(text.substr(0, at));
  if (!bytes.has_value() || std::ranges::find(kPageSizes, *bytes) == std::end(kPageSizes)) {
    return Must("have pages of 4KiB, 2MiB or 1GiB", text);
  }
  pages.page_bytes = *bytes;
  if (at != std::string_view::npos) {
    const std::optional<uint64_t> node = NumberOf(text.substr(at + 1), kLastNumaNode);
    if (!node.has_value()) {
      return Must("have a NUMA node of 0 to 1023 behind @", text);
    }
    pages.numa_node = static_cast<uint32_t>(*node);
  }
  return pages;
}

absl::StatusOr<core::PoolClass> ParseClass(std::string_view text) {
  core::PoolClass parsed = {.pages = {}, .file_bytes = 0, .files = 1};
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) {
    return Must("be PAGE[@NODE]:SIZE[xCOUNT], separated by commas", text);
  }
  RNICD_ASSIGN_OR_RETURN(parsed.pages, ParsePages(text.substr(0, colon)));
  const std::string_view files = text.substr(colon + 1);
  const auto times = files.find('x');
  const std::optional<uint64_t> bytes = BytesOf(files.substr(0, times));
  if (!bytes.has_value() || *bytes % parsed.pages.page_bytes != 0) {
    return Must("have a SIZE such as 64MiB that is a whole number of its pages", text);
  }
  parsed.file_bytes = *bytes;
  if (times != std::string_view::npos) {
    const std::optional<uint64_t> count = NumberOf(files.substr(times + 1), kMostFiles);
    if (count.value_or(0) == 0) {
      return Must("have a COUNT of 1 to 65536 behind x", text);
    }
    parsed.files = static_cast<uint32_t>(*count);
  }
  return parsed;
}

}  // namespace

absl::StatusOr<std::vector<core::PoolClass>> ParsePoolClasses(std::string_view text) {
  std::vector<core::PoolClass> classes;
  if (text.empty()) {
    return classes;
  }
  for (auto comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
    RNICD_ASSIGN_OR_RETURN(classes.emplace_back(), ParseClass(text.substr(0, comma)));
    text.remove_prefix(comma + 1);
  }
  RNICD_ASSIGN_OR_RETURN(classes.emplace_back(), ParseClass(text));
  return classes;
}

}  // namespace rnicd::app
