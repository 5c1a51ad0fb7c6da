#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kubernetes/grant_file.h"

namespace rnicd::kubernetes {

// What stands in the grant file: {"version": 1, "grants": [...]}, one object a grant. Ids are text, because many
// readers of JSON round numbers of 64 bits.
std::string GrantsToJson(const std::vector<GrantRecord>& grants);

// Strict about all that it reads; members that it does not know are passed over.
// Errors: kUnimplemented for another version, kInvalidArgument for all else that is wrong; both for people.
absl::StatusOr<std::vector<GrantRecord>> GrantsFromJson(std::string_view text);

}  // namespace rnicd::kubernetes
