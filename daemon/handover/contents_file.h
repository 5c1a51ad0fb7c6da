#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace rnicd::handover {

// A memory file with these bytes, which nobody can change. Errors: kUnavailable.
absl::StatusOr<UniqueFd> ContentsFile(std::string_view bytes);
// The bytes of such a file. Errors: kInvalidArgument for any other file, or one that is too large.
absl::StatusOr<std::string> ReadContentsFile(const UniqueFd& file);

}  // namespace rnicd::handover
