#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/tenant/grant_table.h"
#include "daemon/core/tenant/policy.h"
#include "rnicd/v1/admin_service.pb.h"

// Converts the requests of operators and device plugins about grants and pods from the wire to core's types.
namespace rnicd::service {

// Core validates the name. Errors: FIELD_OUT_OF_RANGE with the field, "session_limits.regions".
absl::StatusOr<core::GrantTerms> FromWire(const v1::CreateGrantRequest& request);

// Errors: FIELD_OUT_OF_RANGE with the field, "pods[3].labels[0].key".
absl::StatusOr<std::vector<core::PodFacts>> FromWire(const v1::SetPodsRequest& request);

}  // namespace rnicd::service
