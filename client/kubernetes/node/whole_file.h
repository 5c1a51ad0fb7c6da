#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rnicd::kubernetes {

// Files that are read and replaced as a whole. Errors: kFailedPrecondition, with text for people: the file, the call
// and the reason.

// The content; empty when there is no such file. Refuses files that others could have written, by the rules of
// base/files/safe_file.h; symbolic links; and files of more than `max_bytes`.
absl::StatusOr<std::optional<std::string>> ReadOwnFile(const std::string& path, size_t max_bytes);

// The file is on disk when this returns; a crash in between leaves the old file. The new content is first written to
// `path`.new, of mode 0600.
absl::Status ReplaceFile(const std::string& path, std::string_view content);

}  // namespace rnicd::kubernetes
