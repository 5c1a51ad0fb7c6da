#include "base/ndk/network_address.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/inet.h"

namespace rnicd {
namespace {

constexpr std::array<uint8_t, 16> kIpv4Mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr size_t kIpv4Offset = 12;
constexpr int kBitsOfIpv4 = 32;
constexpr int kBitsOfIp = 128;
constexpr int kBitsOfByte = 8;

// The bits of byte `index` that are behind a prefix of `bits`.
uint8_t MaskBehind(int bits, size_t index) {
  const int left = std::clamp(bits - static_cast<int>(index) * kBitsOfByte, 0, kBitsOfByte);
  return static_cast<uint8_t>(0xffU >> static_cast<unsigned>(left));
}

}  // namespace

std::optional<IpAddress> IpAddress::FromText(std::string_view text) {
  const std::string terminated(text);
  std::array<uint8_t, 16> bytes = kIpv4Mapped;
  // The system reads up to a zero byte.
  if (terminated.find('\0') != std::string::npos) {
    return std::nullopt;
  }
  if (InetFromText(false, terminated.c_str(), bytes.data() + kIpv4Offset) ||
      InetFromText(true, terminated.c_str(), bytes.data())) {
    return IpAddress(bytes);
  }
  return std::nullopt;
}

bool IpAddress::is_ipv4() const {
  return std::equal(bytes_.begin(), bytes_.begin() + kIpv4Offset, kIpv4Mapped.begin());
}

bool IpAddress::is_wildcard() const { return *this == IpAddress() || *this == IpAddress(kIpv4Mapped); }

std::string IpAddress::ToText() const {
  return is_ipv4() ? InetToText(false, bytes_.data() + kIpv4Offset) : InetToText(true, bytes_.data());
}

std::optional<IpPrefix> IpPrefix::FromText(std::string_view text) {
  const size_t slash = text.find('/');
  const std::optional<IpAddress> address = IpAddress::FromText(text.substr(0, slash));
  if (!address.has_value()) {
    return std::nullopt;
  }
  const int most = address->is_ipv4() ? kBitsOfIpv4 : kBitsOfIp;
  int bits = most;
  if (slash != std::string_view::npos) {
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + slash + 1, end, bits);
    if (parsed.ec != std::errc() || parsed.ptr != end || bits < 0 || bits > most) {
      return std::nullopt;
    }
  }
  bits += kBitsOfIp - most;
  for (size_t index = 0; index < address->bytes().size(); ++index) {
    if ((address->bytes()[index] & MaskBehind(bits, index)) != 0) {
      return std::nullopt;
    }
  }
  return IpPrefix(*address, static_cast<uint8_t>(bits));
}

bool IpPrefix::Contains(const IpAddress& address) const {
  for (size_t index = 0; index < address.bytes().size(); ++index) {
    const uint8_t differing = address.bytes()[index] ^ address_.bytes()[index];
    if ((differing & static_cast<uint8_t>(~MaskBehind(bits_, index))) != 0) {
      return false;
    }
  }
  return true;
}

std::string IpPrefix::ToText() const {
  return absl::StrCat(address_.ToText(), "/", bits_ - (address_.is_ipv4() ? kBitsOfIp - kBitsOfIpv4 : 0));
}

std::string NetworkAddress::ToText() const {
  return ip.is_ipv4() ? absl::StrCat(ip.ToText(), ":", port) : absl::StrCat("[", ip.ToText(), "]:", port);
}

}  // namespace rnicd
