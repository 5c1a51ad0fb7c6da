#pragma once

#include <string>

#include "tests/kubernetes/simulation/world.h"

namespace rnicd::test {

struct Finding {
  // Empty when every invariant holds.
  std::string invariant;
  std::string difference;
};

// Checks every invariant of README.md.
Finding CheckGrants(World& world);

}  // namespace rnicd::test
