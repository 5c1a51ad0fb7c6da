#pragma once

#include "absl/status/status.h"
#include "daemon/app/config/config.h"

namespace rnicd::app {

// That containers, which see --socket_dir, do not see the operators' directory, the policy and the audit log, however
// the paths are written: they could connect as operators, or read and replace those files. Errors: kFailedPrecondition
// with the flag; those of base/files/folder_linux.h.
absl::Status CheckHiddenFromContainers(const Config& config);

}  // namespace rnicd::app
