#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "rnicd/v1/policy.pb.h"

// Addresses and ports as people write them on command lines.
namespace rnicd::inline client {

// Adds ranges from "10.98.0.0/16,fd00::/8@7000,10.98.0.1@7000-7010" to the list of this name in ConnectionPolicy:
// "listen", "connect" or "accept". Behind "@" is a port, or the first and the last; "accept" has none. Does nothing for
// an empty text.
// Errors: kInvalidArgument, with text for people: what is wrong with which range.
absl::Status AddRanges(std::string_view name, std::string_view list, v1::ConnectionPolicy& connections);

}  // namespace rnicd::inline client
