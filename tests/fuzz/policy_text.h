#pragma once

#include <string>

#include "daemon/core/tenant/policy.h"

namespace rnicd::fuzz {

// The text of a policy file with the same meaning. The same policy always has the same text.
std::string PolicyText(const core::Policy& policy);

}  // namespace rnicd::fuzz
