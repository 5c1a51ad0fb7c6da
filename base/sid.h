#pragma once

#include <string_view>

namespace rnicd {

// True for a security identifier of Windows in the form that the system writes: "S-1-", a decimal authority, and 1 to
// 15 decimal numbers below 2^32, without leading zeros, each after a dash. Source: [MS-DTYP] 2.4.2.1.
bool IsSid(std::string_view text);

}  // namespace rnicd
