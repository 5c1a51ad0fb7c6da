#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/connection_rules.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/rate_limiter.h"
#include "daemon/core/tenant/workload.h"

// A policy as core sees it: the callers that may use the daemon, the tenant of each, and its limits. daemon/policy
// reads the file and refuses invalid content; a policy that arrives here is sound.
namespace rnicd::core {

// A pod as described by the node's device plugin or an operator. The kernel names a caller's pod; this adds its labels.
struct PodFacts {
  // UID as in Container; empty when only the name is known. A pod without UID only serves to name the holder of
  // devices.
  std::string uid;
  std::string namespace_name;
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<ContainerFacts> containers;
};

// Conditions on a caller; all that are set must hold. A matcher without conditions matches no caller.
struct Matcher {
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<std::string> pod_uid;
  std::optional<std::string> pod_namespace;
  // That of the user or of a group.
  std::optional<std::string> sid;
  // Labels of the pod; each must be present with this value.
  std::map<std::string, std::string> pod_labels;

  // `pod` is null for a caller in no known pod.
  bool Matches(const Caller& caller, const PodFacts* pod) const;
};

// Limits of a tenant and of each of its sessions, and whom it may connect with.
struct TenantLimits {
  Limits tenant;
  // Limits of each session; 0: the default of the node.
  Limits session;
  Rate tenant_rate;
  Rate session_rate;
  ConnectionRules connections;
};

// How the callers that a rule matches are grouped into tenants.
enum class Sharing : uint8_t {
  // All callers are one tenant, which has the rule's name.
  kOne,
  // One tenant for each uid of each pod, "name/uid=1000/pod=<uid>", and of each container outside of pods,
  // "name/uid=1000/container=<id>"; callers in neither are one tenant for each uid, "name/uid=1000".
  kEachUid,
  // One tenant for each pod, "name/pod=<uid>"; callers in no pod as with kEachUid.
  kEachPod,
};

struct TenantRule {
  std::string name;
  // Alternatives: one of them must match.
  std::vector<Matcher> matches;
  Sharing sharing = Sharing::kOne;
  TenantLimits limits;
};

struct RoleRule {
  Matcher match;
  // Either kOperator or kDevicePlugin.
  Role role = Role::kOperator;
};

struct Policy {
  // Rules in order; the first match counts.
  std::vector<TenantRule> tenants;
  // Name of the rule for callers that match no other; empty refuses them.
  std::string default_tenant;
  // Rules for the operator's socket; the first match counts. A caller without a match is an operator if it is root or
  // the daemon's own user, and is refused otherwise.
  std::vector<RoleRule> roles;
  // Conditions on a caller at the door of a grant, of which one must hold; without any every caller may enter.
  std::vector<Matcher> doors;
};

}  // namespace rnicd::core
