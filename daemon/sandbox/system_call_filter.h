#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace rnicd::sandbox {

enum class OtherCalls : uint8_t { kKillTheProcess, kAreLogged };

// Restricts the calling thread, and every thread that it starts, to the calls of system_calls.h; `others` selects the
// treatment of all others, and of calls of another architecture (32-bit, x32).
// Lifetime: until the process ends. Needs no_new_privs.
// Errors: kInternal with the step and its errno, also without seccomp, as in some emulators.
// Source: seccomp(2), seccomp_rule_add(3).
absl::Status LoadSystemCallFilter(OtherCalls others);

}  // namespace rnicd::sandbox
