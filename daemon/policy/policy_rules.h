#pragma once

#include "daemon/policy/strict_text.h"
#include "rnicd/v1/policy.pb.h"

namespace rnicd::policy {

// Complains of everything in a policy that is well written and makes no sense, at its line.
void JudgePolicy(const v1::Policy& policy, const Place& place, Complaints& complaints);

}  // namespace rnicd::policy
