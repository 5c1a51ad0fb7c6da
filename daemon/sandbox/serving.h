#pragma once

#include <vector>

#include "daemon/sandbox/system_calls.h"

namespace rnicd::sandbox {

// A use of an allowed call that the daemon has no need of once it serves: needed for its start only, or never.
struct RefusedUse {
  const char* call;
  // All of them hold for a refused use; empty: every use is refused.
  std::vector<ArgumentBits> conditions;
  // Error that the call returns; 0: the kernel kills the process.
  int error_number;
  const char* because;
};

// `looks_for_cards`: libibverbs asks the kernel's netlink for cards each time that one is opened.
std::vector<RefusedUse> RefusedWhenServing(bool looks_for_cards);

}  // namespace rnicd::sandbox
