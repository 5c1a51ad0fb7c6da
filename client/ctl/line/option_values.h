#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/ctl/line/command_line.h"

// Parses the values of options and arguments that several commands share.
// Errors: UsageError.
namespace rnicd::ctl {

// The option's value, a whole number; `otherwise` when it was not given.
absl::StatusOr<uint64_t> NumberOr(const CommandLine& line, std::string_view option, uint64_t otherwise, uint64_t min,
                                  uint64_t max);

// The option's value, a duration; `otherwise` when it was not given.
absl::StatusOr<std::chrono::milliseconds> DurationOr(const CommandLine& line, std::string_view option,
                                                     std::chrono::milliseconds otherwise, std::chrono::milliseconds min,
                                                     std::chrono::milliseconds max);

// An id as the tables show it, or hexadecimal after "0x". `what` names its kind: "a session".
absl::StatusOr<uint64_t> ParseId(std::string_view text, std::string_view what);

}  // namespace rnicd::ctl
