#include "tests/simulation/world/draw_policy.h"

#include "base/units.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

constexpr uint64_t kFirstUid = 1000;
constexpr uint64_t kUids = 3;
// A gid shared by several uids.
constexpr gid_t kSharedGid = 100;
constexpr uint64_t kPods = 3;

std::string PodUid(uint64_t index) { return "0e6f1c52-4a7b-4f0d-9d3e-00000000000" + std::to_string(index); }

std::string DrawNamespace(Dice& dice) { return dice.Chance(50) ? "red" : "blue"; }
std::string DrawTier(Dice& dice) { return dice.Chance(50) ? "gold" : "tin"; }

core::Rate DrawRate(Dice& dice) {
  if (dice.Chance(30)) {
    return {};
  }
  core::Rate rate;
  rate.per_second = dice.Between(2, 30);
  rate.burst = dice.Below(5);
  return rate;
}

core::Matcher DrawMatcher(Dice& dice) {
  core::Matcher matcher;
  const uint64_t choice = dice.Below(8);
  if (choice <= 2 || choice == 7) {
    matcher.uid = static_cast<uid_t>(kFirstUid + dice.Below(kUids));
  }
  if (choice == 3) {
    matcher.gid = kSharedGid;
  }
  if (choice == 4) {
    matcher.pod_uid = PodUid(dice.Below(kPods));
  }
  if (choice == 5 || choice == 7) {
    matcher.pod_namespace = DrawNamespace(dice);
  }
  if (choice == 6) {
    matcher.pod_labels["tier"] = DrawTier(dice);
  }
  // A matcher without conditions matches no caller.
  return dice.Chance(5) ? core::Matcher{} : matcher;
}

}  // namespace

core::Caller DrawCaller(Dice& dice, uint64_t process, const std::shared_ptr<ManualProcess>& handle) {
  core::Caller caller{.process = {.high = 1, .low = process}, .handle = handle};
  caller.uid = static_cast<uid_t>(kFirstUid + dice.Below(kUids));
  caller.gid = dice.Chance(30) ? kSharedGid : caller.uid;
  if (dice.Chance(40)) {
    caller.container.pod_uid = PodUid(dice.Below(kPods));
    caller.container.id = std::string(64, 'c');
  }
  return caller;
}

core::TenantLimits DrawTenantLimits(Dice& dice, bool rates) {
  struct Row {
    Resource resource;
    uint64_t first;
    uint64_t last;
    uint64_t unit;
  };
  static constexpr Row kOfTenant[] = {
      {Resource::kSessions, 1, 4, 1},
      {Resource::kMemoryBytes, 8, 30, kNdkPageBytes},
      {Resource::kPinnedBytes, 3, 16, kNdkPageBytes},
      {Resource::kRegisteredBytes, 6, 60, kNdkPageBytes},
      {Resource::kRegions, 4, 20, 1},
      {Resource::kPostedPages, 10, 60, 1},
      {Resource::kQueuePairs, 4, 12, 1},
      {Resource::kHeapBytes, 30, 120, kNdkPageBytes},
  };
  static constexpr Row kOfSession[] = {
      {Resource::kPinnedBytes, 3, 9, kNdkPageBytes},
      {Resource::kRegisteredBytes, 4, 40, kNdkPageBytes},
      {Resource::kRegions, 2, 10, 1},
      {Resource::kMemoryObjects, 2, 6, 1},
  };
  core::TenantLimits limits;
  for (const Row& row : kOfTenant) {
    if (dice.Chance(35)) {
      limits.tenant[row.resource] = dice.Between(row.first, row.last) * row.unit;
    }
  }
  for (const Row& row : kOfSession) {
    if (dice.Chance(20)) {
      limits.session[row.resource] = dice.Between(row.first, row.last) * row.unit;
    }
  }
  if (dice.Chance(60)) {
    limits.connections.connect = {{.prefix = *IpPrefix::FromText("::/0")}};
  }
  if (rates) {
    limits.tenant_rate = DrawRate(dice);
    limits.session_rate = DrawRate(dice);
  }
  return limits;
}

core::Policy DrawPolicy(Dice& dice, bool rates) {
  core::Policy policy;
  const std::vector<core::Sharing> sharings = {core::Sharing::kOne, core::Sharing::kOne, core::Sharing::kEachUid,
                                               core::Sharing::kEachPod};
  for (const char* name : {"storage", "guests", "batch", "rest"}) {
    if (dice.Chance(20)) {
      continue;
    }
    core::TenantRule rule{.name = name, .sharing = dice.Pick(sharings)};
    const uint64_t matchers = dice.Between(0, 2);
    for (uint64_t index = 0; index < matchers; ++index) {
      rule.matches.push_back(DrawMatcher(dice));
    }
    rule.limits = DrawTenantLimits(dice, rates);
    policy.tenants.push_back(std::move(rule));
  }
  // Without a default rule all other callers are refused.
  if (!policy.tenants.empty() && dice.Chance(75)) {
    policy.default_tenant = policy.tenants.back().name;
  }
  return policy;
}

std::vector<core::PodFacts> DrawPods(Dice& dice) {
  std::vector<core::PodFacts> pods;
  for (uint64_t index = 0; index < kPods; ++index) {
    if (dice.Chance(70)) {
      core::PodFacts pod{.uid = PodUid(index), .name = "pod-" + std::to_string(index)};
      pod.namespace_name = DrawNamespace(dice);
      pod.labels["tier"] = DrawTier(dice);
      pods.push_back(std::move(pod));
    }
  }
  return pods;
}

core::GrantTerms DrawGrantTerms(Dice& dice, bool rates, bool careless) {
  core::GrantTerms terms;
  terms.name = "job-" + std::to_string(dice.Below(6));
  if (careless) {
    const std::vector<std::string> wrong = {"", "two words", std::string(64, 'n')};
    terms.name = dice.Pick(wrong);
  }
  if (dice.Chance(40)) {
    terms.pod_uid = PodUid(dice.Below(kPods));
  }
  if (dice.Chance(60)) {
    terms.lifetime = std::chrono::milliseconds(dice.Between(50, 4000));
  }
  terms.limits = DrawTenantLimits(dice, rates);
  return terms;
}

}  // namespace rnicd::simulation
