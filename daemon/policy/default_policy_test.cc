#include "daemon/policy/default_policy.h"

#include <gtest/gtest.h>

namespace rnicd::policy {
namespace {

using core::Resource;

TEST(DefaultPolicy, LetsEveryCallerInAndEachUidIsATenant) {
  const core::Policy policy = DefaultPolicy();
  ASSERT_EQ(policy.tenants.size(), 1u);
  const core::TenantRule& rule = policy.tenants.front();
  EXPECT_EQ(rule.name, "uid");
  EXPECT_EQ(policy.default_tenant, rule.name);
  EXPECT_TRUE(rule.matches.empty());
  EXPECT_EQ(rule.sharing, core::Sharing::kEachUid);
  EXPECT_TRUE(policy.roles.empty());
}

TEST(DefaultPolicy, BoundsWhatATenantTakesOfTheDaemonsMemory) {
  const core::Limits limits = DefaultPolicy().tenants.front().limits.tenant;
  EXPECT_EQ(limits[Resource::kSessions], 256u);
  EXPECT_EQ(limits[Resource::kLogicalPages], 16777216u);
  EXPECT_EQ(limits[Resource::kHeapBytes], uint64_t{256} << 20);
}

// Bytes have none: the tenant and the node bound them. Pending requests bound a queue of events, so they must have one.
TEST(DefaultPolicy, BoundsEachKindOfObjectOfASession) {
  const core::Limits limits = DefaultPolicy().tenants.front().limits.session;
  for (size_t index = 0; index < core::kLimitedResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    const std::string_view name = core::ResourceName(resource);
    EXPECT_EQ(limits[resource] == 0, resource == Resource::kSessions || name.ends_with("bytes")) << name;
  }
}

TEST(DefaultPolicy, LetsATenantListenForItselfAlone) {
  const core::ConnectionRules rules = DefaultPolicy().tenants.front().limits.connections;
  EXPECT_TRUE(rules.MayListen({.ip = *IpAddress::FromText("10.98.0.1"), .port = 49152}));
  EXPECT_FALSE(rules.MayListen({.ip = *IpAddress::FromText("10.98.0.1"), .port = 49151}));
  EXPECT_TRUE(rules.connect.empty());
  EXPECT_TRUE(rules.accept.empty());
}

}  // namespace
}  // namespace rnicd::policy
