#pragma once

#include "daemon/policy/strict_text.h"
#include "rnicd/v1/policy.pb.h"

namespace rnicd::policy {

// Adds an error, with its line, for everything in a policy that is well-formed but invalid.
void ValidatePolicy(const v1::Policy& policy, const SourceLocation& location, ParseErrors& errors);

}  // namespace rnicd::policy
