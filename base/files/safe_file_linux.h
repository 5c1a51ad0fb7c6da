#pragma once

// What the rule of safe files is made of on Linux.

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace rnicd {

// The rule itself, for a process whose effective user is `user`. `path` is for the error's text.
absl::Status CheckSafeFile(const std::string& path, const struct stat& facts, uid_t user);

// Where a use of the file at this path, or its making, failed with EACCES though its permissions allow this process
// what it `wanted` (access(2)): text that says so, with what to do, to be appended to the failure. Otherwise empty.
// Landlock refuses so what is in a folder that was replaced since the start; without this, its reader would look at
// permissions.
std::string WhyDenied(const std::string& path, int error_number, int wanted);

// The failure of a system call on a file: kFailedPrecondition, "PATH: fsync: EIO".
absl::Status FileError(const std::string& path, std::string_view call, int error_number);

}  // namespace rnicd
