#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rnicd::app {

// Removes for ever the privileges of this process that the daemon has no use for, and returns how many those were. It
// keeps the right to walk through folders, to learn the user behind a pipe, and to enlarge its working set.
// Errors: kInternal with the call and its error. Source: AdjustTokenPrivileges, SE_PRIVILEGE_REMOVED.
absl::StatusOr<size_t> RemovePrivileges();

// Forbids this process to make code, to start processes, to load libraries from other machines or from files that an
// untrusted process wrote, and to be extended by others. For ever. Errors: as RemovePrivileges.
// Source: SetProcessMitigationPolicy, of Windows 10 version 1709 and later.
absl::Status ForbidForeignCode();

}  // namespace rnicd::app
