#include "provider/verbs/queue/qp_address.h"

#include <charconv>
#include <concepts>

namespace rnicd::provider {
namespace {

constexpr uint32_t kMax24Bits = 0xffffff;
constexpr size_t kGidDigits = 2 * sizeof(ibv_gid::raw);

void AppendHex(std::string& text, uint64_t value, int digits) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    text.push_back(kDigits[(value >> shift) & 0xf]);
  }
}

// Takes `digits` hex digits off the front of `text`; false when they are missing.
template <std::unsigned_integral Number>
bool TakeHex(std::string_view& text, size_t digits, Number& number) {
  if (text.size() < digits) {
    return false;
  }
  // from_chars accepts neither a sign nor a prefix for an unsigned number of base 16.
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): there are `digits` of them.
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number, 16);
  if (error != std::errc() || end != text.data() + digits) {
    return false;
  }
  text.remove_prefix(digits);
  return true;
}

bool TakeDot(std::string_view& text) {
  if (!text.starts_with('.')) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

bool TakeGid(std::string_view& text, ibv_gid& gid) {
  for (uint8_t& byte : gid.raw) {
    if (!TakeHex(text, 2, byte)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string FormatQpAddress(const QpAddress& address) {
  std::string text;
  text.reserve(kGidDigits + 30);
  for (const uint8_t byte : address.gid.raw) {
    AppendHex(text, byte, 2);
  }
  text.push_back('.');
  AppendHex(text, address.qpn & kMax24Bits, 6);
  text.push_back('.');
  AppendHex(text, address.psn & kMax24Bits, 6);
  text.push_back('.');
  AppendHex(text, address.lid, 4);
  text.push_back('.');
  AppendHex(text, static_cast<uint64_t>(address.mtu), 1);
  if (address.origin != 0) {
    text.push_back('.');
    AppendHex(text, address.origin, 8);
  }
  return text;
}

std::optional<QpAddress> ParseQpAddress(std::string_view text) {
  QpAddress address;
  uint8_t mtu = 0;
  if (!TakeGid(text, address.gid) || !TakeDot(text) || !TakeHex(text, 6, address.qpn) || !TakeDot(text) ||
      !TakeHex(text, 6, address.psn) || !TakeDot(text) || !TakeHex(text, 4, address.lid) || !TakeDot(text) ||
      !TakeHex(text, 1, mtu) || mtu < IBV_MTU_256 || mtu > IBV_MTU_4096) {
    return std::nullopt;
  }
  address.mtu = static_cast<ibv_mtu>(mtu);
  if (!text.empty() && (!TakeDot(text) || !TakeHex(text, 8, address.origin))) {
    return std::nullopt;
  }
  return text.empty() ? std::optional(address) : std::nullopt;
}

}  // namespace rnicd::provider
