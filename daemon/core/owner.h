#pragma once

#include <string>

#include "daemon/core/caller.h"

namespace rnicd::core {

// Names what a caller's connections and lines of the audit log count for: its pod, else its container, else its user.
// Pods commonly run with the same uid, and one of them must not use up what the others need.
std::string OwnerOf(const Caller& caller);

}  // namespace rnicd::core
