#include "base/hex.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace rnicd {

std::optional<std::string> BytesFromHex(std::string_view digits) {
  std::string bytes;
  for (size_t at = 0; at < digits.size(); at += 2) {
    const std::string_view pair = digits.substr(at, 2);
    const char* const pair_end = pair.data() + pair.size();
    uint8_t byte = 0;
    // Accepts neither a sign nor a prefix.
    const auto [end, error] = std::from_chars(pair.data(), pair_end, byte, 16);
    if (pair.size() != 2 || end != pair_end || error != std::errc()) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace rnicd
