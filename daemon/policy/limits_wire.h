#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/rate_limiter.h"
#include "rnicd/v1/policy.pb.h"

// Converts and checks v1::ResourceLimits, used by policy files and grants, and core's limits.
namespace rnicd::policy {

// All fields of the message but requests_per_second, which is the rate.
core::Limits FromWire(const v1::ResourceLimits& limits);
core::Rate RateFromWire(const v1::ResourceLimits& limits);
// The burst has no field: it is always that of one second.
v1::ResourceLimits ToWire(const core::Limits& limits, const core::Rate& rate);

struct LimitsProblem {
  // Name of the field: "pinned_bytes".
  std::string field;
  // Text for people: "must be a multiple of 4096, is 5000".
  std::string what;
};

// All limits that are invalid in themselves, in the order of core's resources, the rate last.
std::vector<LimitsProblem> ProblemsOf(const v1::ResourceLimits& limits);
// All limits of a session that its owner rules out: any above the owner's, and any number of sessions. Excludes those
// that ProblemsOf reports for either message.
std::vector<LimitsProblem> ProblemsOfSession(const v1::ResourceLimits& session, const v1::ResourceLimits& owner);

// Reports the first of ProblemsOf. Errors: FIELD_OUT_OF_RANGE with `field` and the name within, "limits.pinned_bytes".
absl::Status CheckLimits(const v1::ResourceLimits& limits, std::string_view field);
// Reports the first problem of a session's limits, in themselves or against the owner's. Errors: as CheckLimits.
absl::Status CheckSessionLimits(const v1::ResourceLimits& session, const v1::ResourceLimits& owner,
                                std::string_view field);

}  // namespace rnicd::policy
