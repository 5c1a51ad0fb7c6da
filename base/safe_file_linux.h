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

// The failure of a system call on a file: kFailedPrecondition, "PATH: fsync: EIO".
absl::Status FileError(const std::string& path, std::string_view call, int error_number);

}  // namespace rnicd
