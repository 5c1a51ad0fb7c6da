#pragma once

#include <string_view>

#include "daemon/core/tenant/policy.h"

// The policy of a daemon without --policy_file: each uid of each pod is a tenant. Its session limits are also those of
// every other tenant, of a file or of a grant, that does not set them.
namespace rnicd::policy {

// As a policy file: where an operator starts from.
std::string_view DefaultPolicyText();

core::Policy DefaultPolicy();

}  // namespace rnicd::policy
