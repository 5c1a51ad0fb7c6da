#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "daemon/core/tenant/policy.h"

// The policy file: proto/rnicd/v1/policy.proto in protobuf's text format. docs/POLICY.md explains it to operators.
namespace rnicd::policy {

inline constexpr size_t kPolicyBytesMax = size_t{1} << 20;

// Validates everything before anything takes effect: a policy that is returned is sound.
// Errors: kInvalidArgument with a line "FILE:LINE: REASON" for each error, in the order of lines, at most 20 of them. A
// syntax error hides the errors behind it.
absl::StatusOr<core::Policy> ParsePolicy(std::string_view text, std::string_view file_name);

// Reads the file, which must be a safe one (base/files/safe_file.h) of at most kPolicyBytesMax; a symbolic link is
// followed. Errors: ParsePolicy's, with the path as the file's name; those of base/files/safe_file.h.
absl::StatusOr<core::Policy> LoadPolicy(const std::string& path);

}  // namespace rnicd::policy
