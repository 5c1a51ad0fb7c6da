#pragma once

#include <chrono>
#include <string>

namespace rnicd {

// Time for people: in lines of logs. Intervals are measured by base/clock.h.
using WallTime = std::chrono::system_clock::time_point;

// RFC 3339, UTC, milliseconds: "2026-01-02T03:04:05.678Z".
std::string Rfc3339(WallTime time);

}  // namespace rnicd
