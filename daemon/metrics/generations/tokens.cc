#include "daemon/metrics/generations/tokens.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"

namespace rnicd::metrics {
namespace {

using prometheus::ClientMetric;

bool IsOfName(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':'; }

// Takes `"text"` off the front.
std::optional<std::string> TakeQuoted(std::string_view& rest) {
  std::string text;
  bool escaped = false;
  for (size_t index = 1; index < rest.size() && rest[0] == '"'; ++index) {
    const char c = rest[index];
    if (escaped) {
      text += c == 'n' ? '\n' : c;
      escaped = false;
    } else if (c == '\\') {
      escaped = true;
    } else if (c == '"') {
      rest.remove_prefix(index + 1);
      return text;
    } else {
      text += c;
    }
  }
  return std::nullopt;
}

}  // namespace

bool Skip(std::string_view& rest, std::string_view start) {
  const bool found = rest.starts_with(start);
  rest.remove_prefix(found ? start.size() : 0);
  return found;
}

std::string_view TakeName(std::string_view& rest) {
  size_t length = 0;
  while (length < rest.size() && IsOfName(rest[length])) {
    ++length;
  }
  const std::string_view name = rest.substr(0, length);
  rest.remove_prefix(length);
  return name;
}

bool TakeLabels(std::string_view& rest, std::vector<ClientMetric::Label>& labels) {
  if (!Skip(rest, "{")) {
    return true;
  }
  while (!Skip(rest, "}")) {
    const std::string_view name = TakeName(rest);
    if (name.empty() || !Skip(rest, "=")) {
      return false;
    }
    std::optional<std::string> value = TakeQuoted(rest);
    if (!value.has_value()) {
      return false;
    }
    labels.push_back({std::string(name), *std::move(value)});
    Skip(rest, ",");
  }
  return true;
}

std::optional<double> NumberOf(std::string_view text) {
  if (text == "+Inf") {
    return std::numeric_limits<double>::infinity();
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  const bool good = whole && std::isfinite(number) && !std::signbit(number);
  return good ? std::optional(number) : std::nullopt;
}

}  // namespace rnicd::metrics
