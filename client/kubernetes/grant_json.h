#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kubernetes/grant_file.h"

namespace rnicd::kubernetes {

// Content of the grant file: {"version": 1, "grants": [...]}, one object for each grant. Ids are text, because many
// JSON readers round 64-bit numbers.
std::string GrantsToJson(const std::vector<GrantRecord>& grants);

// Validates every member that it reads and ignores unknown members.
// Errors: kUnimplemented for another version, kInvalidArgument for everything else; both with text for people.
absl::StatusOr<std::vector<GrantRecord>> GrantsFromJson(std::string_view text);

}  // namespace rnicd::kubernetes
