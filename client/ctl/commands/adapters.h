#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "rnicd/v1/adapter_service.pb.h"

namespace rnicd::ctl {

// What the daemon says about its adapters. Opens no session: works on a node whose sessions are all in use.
absl::StatusOr<v1::ListAdaptersResponse> ListAdapters(const std::string& socket_dir);

}  // namespace rnicd::ctl
