#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "daemon/core/request/node.h"
#include "daemon/core/tenant/caller.h"
#include "log/logger.h"

namespace rnicd::door {

// Reports that a connection was refused. `caller` is null when it is unknown. `cause` adds detail to the reason, or is
// OK.
void ReportRefusal(core::Node& node, const log::Logger& logger, std::string_view reason, const core::Caller* caller,
                   const absl::Status& cause = absl::OkStatus());

}  // namespace rnicd::door
