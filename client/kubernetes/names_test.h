#pragma once

#include <cstdint>
#include <string>

// What the tests of the device plugin say in common.
namespace rnicd::kubernetes {

inline constexpr uint64_t kMiB = 1 << 20;
inline const std::string kMemory = "rnicd.io/memory-64mi";

}  // namespace rnicd::kubernetes
