#pragma once

#include <cstdint>

namespace rnicd::log {

enum class Level : uint8_t { kDebug, kInfo, kWarning, kError };

}  // namespace rnicd::log
