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

}  // namespace
}  // namespace rnicd::policy
