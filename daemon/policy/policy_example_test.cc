#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "daemon/core/tenant/heap_cost.h"
#include "daemon/policy/policy_fixture_test.h"

// The examples in the documentation must be valid policies.
namespace rnicd::policy {
namespace {

using core::Resource;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr uint64_t kGiB = uint64_t{1} << 30;

std::string ReadAll(const char* path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The contents of the page's fenced blocks in this language.
std::vector<std::string> BlocksOf(const std::string& page, const std::string& language) {
  std::vector<std::string> blocks;
  const std::string opening = "\n```" + language + "\n";
  for (size_t at = page.find(opening); at != std::string::npos; at = page.find(opening, at)) {
    at += opening.size();
    const size_t end = page.find("```", at);
    EXPECT_NE(end, std::string::npos) << "a block without an end";
    blocks.push_back(page.substr(at, end - at));
  }
  return blocks;
}

class PolicyExample : public testing::Test {
 protected:
  void SetUp() override {
    auto policy = ParsePolicy(ReadAll(RNICD_POLICY_EXAMPLE), "example");
    ASSERT_TRUE(policy.ok()) << policy.status();
    policy_ = *std::move(policy);
    ASSERT_THAT(policy_.tenants, SizeIs(3));
  }

  core::Policy policy_;
};

TEST_F(PolicyExample, GivesEachPodOfTheGoldTierItsOwnTenant) {
  const core::TenantRule& storage = policy_.tenants[0];
  EXPECT_EQ(storage.name, "storage");
  EXPECT_EQ(storage.sharing, core::Sharing::kEachPod);
  ASSERT_THAT(storage.matches, SizeIs(1));
  EXPECT_EQ(storage.matches[0].pod_namespace, "storage");
  EXPECT_THAT(storage.matches[0].pod_labels, ElementsAre(Pair("tier", "gold")));
  EXPECT_EQ(storage.limits.tenant[Resource::kPinnedBytes], 16 * kGiB);
  EXPECT_EQ(storage.limits.tenant[Resource::kRegisteredBytes], 64 * kGiB);
  EXPECT_EQ(storage.limits.tenant[Resource::kMemoryBytes], 16 * kGiB);
  EXPECT_EQ(storage.limits.session[Resource::kPinnedBytes], 8 * kGiB);
  EXPECT_EQ(storage.limits.tenant_rate.per_second, 20000u);
  EXPECT_EQ(storage.limits.session_rate.per_second, 10000u);
}

TEST_F(PolicyExample, LetsTheGoldTierMeetOnItsNetwork) {
  const core::ConnectionRules& rules = policy_.tenants[0].limits.connections;
  const IpAddress peer = *IpAddress::FromText("10.98.7.1");
  EXPECT_TRUE(rules.MayListen({.ip = peer, .port = 7099}));
  EXPECT_FALSE(rules.MayListen({.ip = peer, .port = 7100}));
  EXPECT_TRUE(rules.MayReach(peer));
  EXPECT_TRUE(rules.Accepts(peer));
  EXPECT_FALSE(rules.Accepts(*IpAddress::FromText("10.99.7.1")));
}

TEST_F(PolicyExample, PutsTwoServicesTogether) {
  const core::TenantRule& services = policy_.tenants[1];
  EXPECT_EQ(services.name, "services");
  EXPECT_EQ(services.sharing, core::Sharing::kOne);
  ASSERT_THAT(services.matches, SizeIs(2));
  EXPECT_EQ(services.matches[0].uid, 998u);
  EXPECT_EQ(services.matches[0].gid, std::nullopt);
  EXPECT_EQ(services.matches[1].uid, 997u);
  EXPECT_EQ(services.matches[1].gid, 997u);
  EXPECT_EQ(services.limits.tenant[Resource::kPinnedBytes], 4 * kGiB);
}

TEST_F(PolicyExample, LimitsGuestsInEverything) {
  const core::TenantRule& guests = policy_.tenants[2];
  EXPECT_EQ(policy_.default_tenant, "guests");
  EXPECT_EQ(guests.name, "guests");
  EXPECT_EQ(guests.sharing, core::Sharing::kEachUid);
  EXPECT_THAT(guests.matches, IsEmpty());
  for (size_t index = 0; index < core::kLimitedResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    EXPECT_NE(guests.limits.tenant[resource], 0u) << core::ResourceName(resource);
  }
  EXPECT_EQ(guests.limits.tenant[Resource::kPinnedBytes], kGiB);
  EXPECT_EQ(guests.limits.tenant_rate.per_second, 2000u);
}

TEST_F(PolicyExample, MakesTheDaemonsOwnUserADevicePlugin) {
  ASSERT_THAT(policy_.roles, SizeIs(1));
  EXPECT_EQ(policy_.roles[0].match.uid, 65532u);
  EXPECT_EQ(policy_.roles[0].role, core::Role::kDevicePlugin);
}

TEST(PolicyPage, SaysWhatEachObjectCostsTheDaemon) {
  const std::string page = ReadAll(RNICD_POLICY_PAGE);
  for (size_t index = 0; index < core::kLimitedResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    const core::HeapCost cost = core::HeapCostOf(resource);
    const std::string name(core::ResourceName(resource));
    const std::string of = cost.of == 1 ? "" : " for each " + std::to_string(cost.of);
    const std::string row = absl::StrCat("| `", name, "` | ", cost.bytes, of, " |");
    EXPECT_EQ(page.find(row) != std::string::npos, cost.bytes != 0) << row;
  }
}

TEST(PolicyPage, ShowsConnectionsThatATenantMayHave) {
  const std::vector<std::string> blocks = BlocksOf(ReadAll(RNICD_POLICY_PAGE), "textproto");
  ASSERT_THAT(blocks, SizeIs(1));
  EXPECT_THAT(ErrorsIn("tenant { name: \"a\" match { uid: 1 }\n" + blocks[0] + "}"), IsEmpty());
}

TEST(PolicyPage, SaysOfEveryRefusalWhatTheDaemonSays) {
  const std::string page = ReadAll(RNICD_POLICY_PAGE);
  const std::vector<std::string> wrong = BlocksOf(page, "textproto-refused");
  ASSERT_THAT(wrong, SizeIs(1));
  const std::vector<std::string> output = BlocksOf(page, "refusals");
  ASSERT_THAT(output, SizeIs(1));
  const auto policy = ParsePolicy(wrong[0], "/etc/rnicd/policy.textproto");
  EXPECT_EQ(std::string(policy.status().message()) + "\n", output[0]);
}

}  // namespace
}  // namespace rnicd::policy
