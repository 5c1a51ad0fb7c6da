#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rnicd::ctl {

// Converts "local-write,remote-read" to kMrFlag bits; "none" is 0. Empty for an unknown name.
std::optional<uint32_t> ParseMrFlags(std::string_view names);
// The reverse; "none" for 0. remote-write stands for both of its bits.
std::string MrFlagNames(uint32_t flags);

}  // namespace rnicd::ctl
