#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/strong_id.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/grant_table.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/policy.h"

namespace rnicd::core {

// What one owner may hold in an older generation of the daemon. An empty tenant is the node.
struct HeldUse {
  std::string tenant;
  std::string rule;
  // UID of the pod that a tenant of the policy stands for; empty if none.
  std::string pod_uid;
  // 0 for a tenant of the policy, and for the node.
  GrantId grant;
  // In the order of Resource. With a limit: the most that it may hold there; without: what it holds.
  std::array<uint64_t, kResourceCount> held{};
};

// What a newer generation gets from an older one.
struct Inheritance {
  // Those that have sessions.
  std::vector<ProcessKey> processes;
  // The node, and each tenant that holds something.
  std::vector<HeldUse> held;
  std::vector<HandedGrant> grants;
  std::vector<PodFacts> pods;
};

}  // namespace rnicd::core
