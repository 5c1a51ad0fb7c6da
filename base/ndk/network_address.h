#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rnicd {

// An IPv4 or IPv6 address without a zone. IPv4 addresses are kept as ::ffff:a.b.c.d, so that each has one spelling.
class IpAddress {
 public:
  // The address "::", which names no host.
  IpAddress() = default;
  explicit IpAddress(const std::array<uint8_t, 16>& bytes) : bytes_(bytes) {}
  // "10.98.0.1", "fe80::1". Empty for text that is no address.
  static std::optional<IpAddress> FromText(std::string_view text);

  const std::array<uint8_t, 16>& bytes() const { return bytes_; }
  bool is_ipv4() const;
  // "::" and "0.0.0.0".
  bool is_wildcard() const;
  std::string ToText() const;

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  std::array<uint8_t, 16> bytes_{};
};

// The addresses that begin with the same bits.
class IpPrefix {
 public:
  // "10.98.0.0/16", "fd00::/8"; an address alone is a prefix of its own. Empty for other text, also where a bit behind
  // the prefix is set.
  static std::optional<IpPrefix> FromText(std::string_view text);

  bool Contains(const IpAddress& address) const;
  std::string ToText() const;

  friend bool operator==(const IpPrefix&, const IpPrefix&) = default;

 private:
  IpPrefix(const IpAddress& address, uint8_t bits) : address_(address), bits_(bits) {}

  IpAddress address_;
  // Up to 128; a prefix of IPv4 addresses has at least 96.
  uint8_t bits_ = 0;
};

// Where a connection begins or ends. Source: SOCKADDR_INET.
struct NetworkAddress {
  IpAddress ip;
  // 0: none yet.
  uint16_t port = 0;

  // "10.98.0.1:4791", "[fe80::1]:4791".
  std::string ToText() const;
  friend auto operator<=>(const NetworkAddress&, const NetworkAddress&) = default;
};

}  // namespace rnicd
