#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

// What the tests of the device plugin say in common.
namespace rnicd::kubernetes {

inline const std::string kMemory = "rnicd.io/memory-64mi";

}  // namespace rnicd::kubernetes
