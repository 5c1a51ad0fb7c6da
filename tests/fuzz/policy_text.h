#pragma once

#include <string>

#include "daemon/core/policy.h"

namespace rnicd::fuzz {

// A policy as the text of a policy file that means the same. The same policy always has the same text.
std::string PolicyText(const core::Policy& policy);

}  // namespace rnicd::fuzz
