#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/ledger.h"
#include "daemon/core/rate_limiter.h"
#include "rnicd/v1/policy.pb.h"

// v1::ResourceLimits, as policy files and grants have it, and core's limits.
namespace rnicd::policy {

// Everything of the message but requests_per_second, which is the rate.
core::Limits FromWire(const v1::ResourceLimits& limits);
core::Rate RateFromWire(const v1::ResourceLimits& limits);
// The burst has no field: it is always one second's.
v1::ResourceLimits ToWire(const core::Limits& limits, const core::Rate& rate);

struct LimitsProblem {
  // "pinned_bytes".
  std::string field;
  // For people: "must be a multiple of 4096, is 5000".
  std::string what;
};

// All that makes no sense in itself, in the order of core's resources, the rate last.
std::vector<LimitsProblem> ProblemsOf(const v1::ResourceLimits& limits);
// What each of an owner's sessions may not have: more than the owner, and sessions. Not what ProblemsOf says of either.
std::vector<LimitsProblem> ProblemsOfSession(const v1::ResourceLimits& session, const v1::ResourceLimits& owner);

// The first of ProblemsOf. Errors: FIELD_OUT_OF_RANGE with `field` and the name within, "limits.pinned_bytes".
absl::Status CheckLimits(const v1::ResourceLimits& limits, std::string_view field);
// The first problem of a session's limits, in themselves or against the owner's. Errors: likewise.
absl::Status CheckSessionLimits(const v1::ResourceLimits& session, const v1::ResourceLimits& owner,
                                std::string_view field);

}  // namespace rnicd::policy
