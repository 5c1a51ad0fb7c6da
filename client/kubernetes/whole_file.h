#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rnicd::kubernetes {

// Files that are read and replaced as a whole. Errors: kFailedPrecondition, for people: which file, which call, why.

// The content. Nothing when there is no such file. Refuses what others could have written, by the rule of
// base/safe_file.h; symbolic links; and files of more than `max_bytes`.
absl::StatusOr<std::optional<std::string>> ReadOwnFile(const std::string& path, size_t max_bytes);

// On disk when it returns; a crash on the way leaves the old file. The new one is prepared beside it, as `path`.new.
absl::Status ReplaceFile(const std::string& path, std::string_view content, mode_t mode);

}  // namespace rnicd::kubernetes
