#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::ctl {

// Runs systemctl and returns what it prints, without the last line break; its errors go to this program's.
// Errors: kUnavailable with the command when it fails, or when there is no systemctl.
absl::StatusOr<std::string> Systemctl(std::vector<std::string> arguments);

}  // namespace rnicd::ctl
