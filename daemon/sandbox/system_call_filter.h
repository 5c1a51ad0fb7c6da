#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace rnicd::sandbox {

enum class OtherCalls : uint8_t { kKillTheProcess, kAreLogged };

// From here on the calling thread, and every thread that it starts, may make the calls of system_calls.h; `others` says
// what becomes of all others, and of calls of another architecture (32-bit, x32).
// Lifetime: until the process ends. Needs no_new_privs.
// Errors: kInternal with the step and its errno; what has no seccomp, such as some emulators, answers so.
// Source: seccomp(2), seccomp_rule_add(3).
absl::Status LoadSystemCallFilter(OtherCalls others);

}  // namespace rnicd::sandbox
