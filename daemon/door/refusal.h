#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "daemon/core/request/node.h"
#include "daemon/core/tenant/caller.h"
#include "log/logger.h"

namespace rnicd::door {

// Why a connection is refused.
struct Refusal {
  // One of core::kRefusals.
  std::string_view reason;
  // Adds detail to the reason, or is OK.
  absl::Status cause;
};

// The refusal of a peer that cannot be identified: kResourceExhausted means that descriptors ran out.
Refusal RefusalOfIdentity(const absl::Status& cause);

// Reports that a connection was refused. `caller` is null when it is unknown; `tenant` when it did not come through the
// door of a grant.
void ReportRefusal(core::Node& node, const log::Logger& logger, const Refusal& refusal, const core::Caller* caller,
                   core::Tenant* tenant = nullptr);
// Only counts it: the reason is one of core::kRefusals.
void CountRefusal(core::Node& node, std::string_view reason, core::Tenant* tenant);

}  // namespace rnicd::door
