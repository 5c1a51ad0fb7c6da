#include "daemon/policy/policy_file.h"

#include "daemon/policy/policy_fixture_test.h"

namespace rnicd::policy {
namespace {

using core::Resource;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr char kOneTenant[] = "tenant { name: \"a\" }\ndefault_tenant: \"a\"\n";

TEST(ParsePolicy, AFileWithoutARuleIsRefused) {
  for (const char* const text : {"", "\n", "# nothing\n"}) {
    EXPECT_EQ(ParsePolicy(text, "f").status().message(),
              "f:1: the file has neither a tenant nor a role; with a role alone only grants let callers in");
  }
}

TEST(ParsePolicy, ARoleAloneLetsNobodyInWithoutAGrant) {
  const auto policy = ParsePolicy("role { match { uid: 0 } role: CALLER_ROLE_OPERATOR }", "f");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_THAT(policy->tenants, IsEmpty());
  EXPECT_EQ(policy->default_tenant, "");
  EXPECT_EQ(policy->roles.size(), 1u);
}

TEST(ParsePolicy, EveryConditionOfAMatchArrives) {
  const auto policy = ParsePolicy(R"(tenant {
    name: "a"
    match {
      uid: 0 gid: 7 pod_uid: "0123abcd-0123-4567-89ab-0123456789ab" pod_namespace: "n"
      pod_label { key: "k" value: "v" } pod_label { key: "l" value: "" }
    }
    match { gid: 0 }
  })",
                                  "f");
  ASSERT_TRUE(policy.ok()) << policy.status();
  ASSERT_EQ(policy->tenants.size(), 1u);
  ASSERT_EQ(policy->tenants[0].matches.size(), 2u);
  const core::Matcher& all = policy->tenants[0].matches[0];
  EXPECT_EQ(all.uid, 0u);
  EXPECT_EQ(all.gid, 7u);
  EXPECT_EQ(all.pod_uid, "0123abcd-0123-4567-89ab-0123456789ab");
  EXPECT_EQ(all.pod_namespace, "n");
  EXPECT_THAT(all.pod_labels, ElementsAre(Pair("k", "v"), Pair("l", "")));
  const core::Matcher& one = policy->tenants[0].matches[1];
  EXPECT_EQ(one.uid, std::nullopt);
  EXPECT_EQ(one.gid, 0u);
  EXPECT_EQ(one.pod_uid, std::nullopt);
  EXPECT_EQ(one.pod_namespace, std::nullopt);
  EXPECT_THAT(one.pod_labels, IsEmpty());
}

TEST(ParsePolicy, LimitsArriveWhereTheyBelong) {
  const auto policy = ParsePolicy(R"(tenant {
    name: "a" match { uid: 1 }
    limits { regions: 10 sessions: 3 requests_per_second: 100 }
    session_limits { regions: 5 windows: 6 requests_per_second: 50 }
  })",
                                  "f");
  ASSERT_TRUE(policy.ok()) << policy.status();
  const core::TenantLimits& limits = policy->tenants.at(0).limits;
  EXPECT_EQ(limits.tenant[Resource::kRegions], 10u);
  EXPECT_EQ(limits.tenant[Resource::kSessions], 3u);
  EXPECT_EQ(limits.tenant[Resource::kWindows], 0u);
  EXPECT_EQ(limits.session[Resource::kRegions], 5u);
  EXPECT_EQ(limits.session[Resource::kWindows], 6u);
  EXPECT_EQ(limits.tenant_rate.per_second, 100u);
  EXPECT_EQ(limits.session_rate.per_second, 50u);
}

TEST(ParsePolicy, ConnectionsArriveInTheirLists) {
  const auto policy = ParsePolicy(R"(tenant {
    name: "a" match { uid: 1 }
    connections {
      listen { prefix: "10.98.0.1" first_port: 7000 last_port: 7010 }
      connect { prefix: "10.98.0.2" }
      accept { prefix: "10.98.0.3" }
    }
  })",
                                  "f");
  ASSERT_TRUE(policy.ok()) << policy.status();
  const core::ConnectionRules& rules = policy->tenants.at(0).limits.connections;
  EXPECT_TRUE(rules.MayListen({.ip = *IpAddress::FromText("10.98.0.1"), .port = 7010}));
  EXPECT_TRUE(rules.MayReach({.ip = *IpAddress::FromText("10.98.0.2"), .port = 80}));
  EXPECT_TRUE(rules.Accepts(*IpAddress::FromText("10.98.0.3")));
}

TEST(ParsePolicy, EachSharingArrives) {
  const std::pair<const char*, core::Sharing> rows[] = {{"", core::Sharing::kOne},
                                                        {"sharing: SHARING_UNSPECIFIED", core::Sharing::kOne},
                                                        {"sharing: SHARING_ONE_TENANT", core::Sharing::kOne},
                                                        {"sharing: SHARING_EACH_UID", core::Sharing::kEachUid},
                                                        {"sharing: SHARING_EACH_POD", core::Sharing::kEachPod}};
  for (const auto& [text, sharing] : rows) {
    const auto policy = ParsePolicy(std::string("tenant { name: \"a\" match { uid: 1 } ") + text + " }", "f");
    ASSERT_TRUE(policy.ok()) << policy.status();
    EXPECT_EQ(policy->tenants.at(0).sharing, sharing) << text;
  }
}

TEST(ParsePolicy, RolesArriveInTheirOrder) {
  const auto policy = ParsePolicy(
      "role { match { uid: 5 } role: CALLER_ROLE_DEVICE_PLUGIN } role { match { gid: 6 } role: CALLER_ROLE_OPERATOR }",
      "f");
  ASSERT_TRUE(policy.ok()) << policy.status();
  ASSERT_EQ(policy->roles.size(), 2u);
  EXPECT_EQ(policy->roles[0].role, core::Role::kDevicePlugin);
  EXPECT_EQ(policy->roles[0].match.uid, 5u);
  EXPECT_EQ(policy->roles[1].role, core::Role::kOperator);
  EXPECT_EQ(policy->roles[1].match.gid, 6u);
}

TEST(ParsePolicy, AnyOfTheMatchesOfDoorsMayHold) {
  const auto policy =
      ParsePolicy("role { match { uid: 5 } role: CALLER_ROLE_DEVICE_PLUGIN } door { uid: 7 } door { gid: 8 }", "f");
  ASSERT_TRUE(policy.ok()) << policy.status();
  ASSERT_EQ(policy->doors.size(), 2u);
  EXPECT_EQ(policy->doors[0].uid, 7u);
  EXPECT_EQ(policy->doors[1].gid, 8u);
}

TEST(ParsePolicy, CommentsMayStandAnywhere) {
  EXPECT_THAT(ErrorsIn("# ä\ntenant { # b\n name: \"a\" # c\n}\n#d\ndefault_tenant: \"a\" # e"), IsEmpty());
}

TEST(ParsePolicy, AByteOrderMarkAtTheStartIsIgnored) {
  EXPECT_TRUE(ParsePolicy(std::string("\xEF\xBB\xBF") + kOneTenant, "f").ok());
  EXPECT_FALSE(ParsePolicy(std::string(kOneTenant) + "\xEF\xBB\xBF", "f").ok());
}

TEST(ParsePolicy, ANulByteIsRefusedAtItsLine) {
  const std::string text = std::string("# one\n# two") + '\0' + "\n" + kOneTenant;
  EXPECT_THAT(ErrorsIn(text), ElementsAre("2: contains a NUL byte"));
}

TEST(ParsePolicy, ATextThatIsTooLongIsRefused) {
  std::string text = kOneTenant;
  text.append(kPolicyBytesMax - text.size(), '\n');
  EXPECT_THAT(ErrorsIn(text), IsEmpty());
  EXPECT_THAT(ErrorsIn(text + "\n"), ElementsAre("1: the file is longer than 1048576 bytes"));
}

}  // namespace
}  // namespace rnicd::policy
