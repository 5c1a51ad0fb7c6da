#include "tests/vm/foreign_peer/address.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>

namespace foreign_peer {
namespace {

constexpr size_t kGidDigits = 2 * sizeof(ibv_gid::raw);

std::string Hex(uint64_t value, int digits) {
  char text[17];
  std::snprintf(text, sizeof(text), "%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

// True if `text` matches `form`: a hex digit for each 'h', otherwise the same character.
bool HasForm(const std::string& text, const std::string& form) {
  if (text.size() != form.size()) {
    return false;
  }
  for (size_t index = 0; index < text.size(); ++index) {
    const bool fits =
        form[index] == 'h' ? std::isxdigit(static_cast<unsigned char>(text[index])) != 0 : text[index] == form[index];
    if (!fits) {
      return false;
    }
  }
  return true;
}

uint32_t NumberAt(const std::string& text, size_t begin, size_t digits) {
  return static_cast<uint32_t>(std::strtoul(text.substr(begin, digits).c_str(), nullptr, 16));
}

}  // namespace

std::string FormatAddress(const Address& address) {
  std::string text;
  for (const uint8_t byte : address.gid.raw) {
    text += Hex(byte, 2);
  }
  return text + "." + Hex(address.qpn, 6) + "." + Hex(address.psn, 6) + "." + Hex(address.lid, 4) + "." +
         Hex(static_cast<uint64_t>(address.mtu), 1);
}

std::optional<Address> ParseAddress(const std::string& text) {
  const std::string form = std::string(kGidDigits, 'h') + ".hhhhhh.hhhhhh.hhhh.h";
  if (!HasForm(text, form) && !HasForm(text, form + ".hhhhhhhh")) {
    return std::nullopt;
  }
  Address address;
  for (size_t index = 0; index < sizeof(address.gid.raw); ++index) {
    address.gid.raw[index] = static_cast<uint8_t>(NumberAt(text, 2 * index, 2));
  }
  address.qpn = NumberAt(text, kGidDigits + 1, 6);
  address.psn = NumberAt(text, kGidDigits + 8, 6);
  address.lid = static_cast<uint16_t>(NumberAt(text, kGidDigits + 15, 4));
  const uint32_t mtu = NumberAt(text, kGidDigits + 20, 1);
  if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096) {
    return std::nullopt;
  }
  address.mtu = static_cast<ibv_mtu>(mtu);
  return address;
}

}  // namespace foreign_peer
