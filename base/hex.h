#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rnicd {

// The bytes that pairs of hexadecimal digits stand for, of either case; nullopt for any other text. The way back is
// absl::BytesToHexString, whose counterpart has another form since 2024.
std::optional<std::string> BytesFromHex(std::string_view digits);

}  // namespace rnicd
