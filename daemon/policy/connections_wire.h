#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/tenant/connection_rules.h"
#include "rnicd/v1/policy.pb.h"

// Converts and checks v1::ConnectionPolicy, used by policy files and grants, and core's rules.
namespace rnicd::policy {

// Most ranges in a list: every decision may look at all of it.
inline constexpr int kRangesMax = 64;

struct ConnectionsProblem {
  // Number of the list's field in ConnectionPolicy, and its name.
  int list = 0;
  std::string list_name;
  // Position in the list.
  int index = 0;
  // Name of the range's field; empty for a problem of the whole list.
  std::string field;
  // Text for people: "must be at most 65535, is 70000".
  std::string what;

  // "connect[2].prefix", "connect".
  std::string Path() const;
};

// At most one for each range, in the order of the message.
std::vector<ConnectionsProblem> ProblemsOf(const v1::ConnectionPolicy& connections);

// Reports the first of ProblemsOf. Errors: FIELD_OUT_OF_RANGE with `field` and the path within.
absl::Status CheckConnections(const v1::ConnectionPolicy& connections, std::string_view field);

// For a message without problems.
core::ConnectionRules FromWire(const v1::ConnectionPolicy& connections);
// A range of all ports is shown with the first and the last.
v1::ConnectionPolicy ToWire(const core::ConnectionRules& rules);

}  // namespace rnicd::policy
