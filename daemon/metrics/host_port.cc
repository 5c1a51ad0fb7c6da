#include "daemon/metrics/host_port.h"

#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <system_error>

namespace rnicd::metrics {
namespace {

constexpr unsigned char kLoopbackNet = 127;

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end is known.
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  return !text.empty() && error == std::errc() && rest == end ? std::optional(port) : std::nullopt;
}

}  // namespace

std::optional<SocketAddress> ParseHost(std::string_view text) {
  SocketAddress address;
  const bool is_ipv6 = text.starts_with('[') && text.ends_with(']');
  if (is_ipv6) {
    text = text.substr(1, text.size() - 2);
  }
  address.family = is_ipv6 ? kIpv6Family : kIpv4Family;
  unsigned char* const host = is_ipv6 ? address.ipv6 : address.ipv4;
  return ParseNumericHost(address.family, std::string(text), host) ? std::optional(address) : std::nullopt;
}

std::string_view HostPart(std::string_view text) {
  if (!text.starts_with('[')) {
    return text.substr(0, text.rfind(':'));
  }
  const size_t end = text.find("]:");
  return end == std::string_view::npos ? text : text.substr(0, end + 1);
}

std::optional<SocketAddress> ParseHostPort(std::string_view text) {
  const std::string_view host = HostPart(text);
  if (host.size() == text.size()) {
    return std::nullopt;
  }
  std::optional<SocketAddress> address = ParseHost(host);
  const std::optional<uint16_t> port = ParsePort(text.substr(host.size() + 1));
  if (!address.has_value() || !port.has_value()) {
    return std::nullopt;
  }
  address->port[0] = static_cast<unsigned char>(*port >> 8);
  address->port[1] = static_cast<unsigned char>(*port & 0xff);
  return address;
}

bool IsLoopback(const SocketAddress& address) {
  static constexpr std::array<unsigned char, 16> kIpv6Loopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  static constexpr std::array<unsigned char, 13> kMappedLoopback = {0, 0, 0, 0,    0,    0,           0,
                                                                    0, 0, 0, 0xff, 0xff, kLoopbackNet};
  if (address.family == kIpv6Family) {
    return std::memcmp(address.ipv6, kIpv6Loopback.data(), kIpv6Loopback.size()) == 0 ||
           std::memcmp(address.ipv6, kMappedLoopback.data(), kMappedLoopback.size()) == 0;
  }
  return address.family == kIpv4Family && address.ipv4[0] == kLoopbackNet;
}

}  // namespace rnicd::metrics
