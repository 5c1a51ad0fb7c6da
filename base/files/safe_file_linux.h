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

// Text to append to an EACCES failure of opening or creating the file at this path, when its permissions allow this
// process the access `wanted` (access(2)). It gives the cause and the remedy. Otherwise empty. Landlock refuses files
// in a folder that was replaced since the start; without this text the reader would look for wrong permissions.
std::string WhyDenied(const std::string& path, int error_number, int wanted);

// The failure of a system call on a file: kFailedPrecondition, "PATH: fsync: EIO".
absl::Status FileError(const std::string& path, std::string_view call, int error_number);

}  // namespace rnicd
