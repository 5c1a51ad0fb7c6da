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

// Restricts all threads of the process, in addition, to what serving.h leaves; `refused` selects the treatment of uses
// that are refused there without an errno.
// Lifetime: until the process ends. Must be called after LoadSystemCallFilter, once.
// Errors: kInternal with the step and its errno; then no thread has the filter.
// Source: SECCOMP_FILTER_FLAG_TSYNC of seccomp(2).
absl::Status LoadServingFilter(OtherCalls refused, bool looks_for_cards);

}  // namespace rnicd::sandbox
