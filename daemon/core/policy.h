#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/caller.h"
#include "daemon/core/ledger.h"
#include "daemon/core/rate_limiter.h"
#include "daemon/core/workload.h"

// Who may use the daemon, as which tenant, and how much of it: a policy file as core sees it. daemon/policy reads the
// file and refuses what makes no sense; what arrives here is sound.
namespace rnicd::core {

// What the node's device plugin or operator says of a pod. The kernel names the pod of a caller, this gives it labels.
struct PodFacts {
  // As in Container; empty when only the name is known, and then it says who holds devices and nothing else.
  std::string uid;
  std::string namespace_name;
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<ContainerFacts> containers;
};

// Conditions on a caller; all that are set must hold. One without any holds for nobody.
struct Matcher {
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<std::string> pod_uid;
  std::optional<std::string> pod_namespace;
  // Of the pod; each must be there with this value.
  std::map<std::string, std::string> pod_labels;

  // `pod` is null for a caller in no known pod.
  bool Matches(const Caller& caller, const PodFacts* pod) const;
};

// What a tenant and each of its sessions may have.
struct TenantLimits {
  Limits tenant;
  // 0 for what the daemon's flags say of every session.
  Limits session;
  Rate tenant_rate;
  Rate session_rate;
};

// Whom a rule makes one tenant of.
enum class Sharing : uint8_t {
  // All whom it matches are one tenant, which has the rule's name.
  kOne,
  // One tenant for each uid, "name/uid=1000".
  kEachUid,
  // One tenant for each pod, "name/pod=<uid>"; callers in no pod are one tenant for each uid.
  kEachPod,
};

struct TenantRule {
  std::string name;
  // Any of them.
  std::vector<Matcher> matches;
  Sharing sharing = Sharing::kOne;
  TenantLimits limits;
};

struct RoleRule {
  Matcher match;
  // kOperator or kDevicePlugin.
  Role role = Role::kOperator;
};

struct Policy {
  // The first one that matches counts.
  std::vector<TenantRule> tenants;
  // The name of the rule for callers whom none matches; empty turns them away.
  std::string default_tenant;
  // On the operator's socket, the first one that matches counts. Whom none matches is an operator as root or as the
  // daemon's own user, and turned away otherwise.
  std::vector<RoleRule> roles;
};

// Without a policy file: everyone is let in, and each uid is a tenant with these limits.
Policy OneTenantForEachUid(const Limits& limits);

}  // namespace rnicd::core
