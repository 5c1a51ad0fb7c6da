#include "daemon/metrics/host_port.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace rnicd::metrics {
namespace {

template <typename Number>
std::optional<Number> ParseDecimal(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end is known.
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return !text.empty() && error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<uint32_t> ParseIpv4(std::string_view text) {
  constexpr int kParts = 4;
  uint32_t host = 0;
  for (int part = 0; part < kParts; ++part) {
    const size_t end = part + 1 < kParts ? text.find('.') : text.size();
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    const std::string_view digits = text.substr(0, end);
    const std::optional<uint8_t> number = ParseDecimal<uint8_t>(digits);
    if (!number.has_value() || (digits.size() > 1 && digits.front() == '0')) {
      return std::nullopt;
    }
    host = host << 8 | *number;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return host;
}

std::optional<Ipv4Address> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<uint32_t> host = ParseIpv4(text.substr(0, colon));
  const std::optional<uint16_t> port = ParseDecimal<uint16_t>(text.substr(colon + 1));
  return host.has_value() && port.has_value() ? std::optional(Ipv4Address{.host = *host, .port = *port}) : std::nullopt;
}

}  // namespace rnicd::metrics
