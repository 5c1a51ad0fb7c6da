#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace rnicd {

// Whether a folder is another one or lies below it. The kernel answers for the folders themselves, whatever links, ".."
// and mounts of a folder in a second place their paths have. False where one of them does not exist.
// Errors: those of FileError. Source: statx(2), proc(5) on mountinfo.
absl::StatusOr<bool> IsPartOf(const std::string& folder, const std::string& path);

}  // namespace rnicd
