#pragma once

#include "absl/status/status.h"

namespace rnicd::sandbox {

// Keeps the memory of this process out of core dumps: of files, by the limit, and of programs that the kernel starts
// for dumps. Other processes of its user can then neither trace it nor read its memory without CAP_SYS_PTRACE.
// What /proc shows to every process stays readable, and the process itself still reads all of its own.
// Errors: kInternal with the step and its errno.
// Source: RLIMIT_CORE of getrlimit(2), PR_SET_DUMPABLE of prctl(2), core(5).
absl::Status ForbidDumps();

}  // namespace rnicd::sandbox
