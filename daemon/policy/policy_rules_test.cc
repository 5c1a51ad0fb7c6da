#include "daemon/policy/policy_rules.h"

#include "daemon/policy/policy_fixture_test.h"

namespace rnicd::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// Errors in a policy whose one tenant has these lines, from line 2 on.
std::vector<std::string> ErrorsInTenant(const std::string& lines) {
  return ErrorsIn("tenant { name: \"a\" match { uid: 1 }\n" + lines + "\n}");
}

// Errors in a policy whose one match has these lines, from line 2 on.
std::vector<std::string> ErrorsInMatch(const std::string& lines) {
  return ErrorsIn("tenant { name: \"a\" match {\n" + lines + "\n} }");
}

TEST(PolicyRules, ATenantWithoutANameIsRefused) {
  EXPECT_THAT(ErrorsIn("\ntenant {\n match { uid: 1 }\n}"), ElementsAre("2: a tenant needs a name"));
  EXPECT_THAT(ErrorsIn("\ntenant {\n match { uid: 1 }\n name: \"\"\n}"), ElementsAre("4: a tenant needs a name"));
}

TEST(PolicyRules, ATenantWithABadNameIsRefused) {
  for (const std::string& name : {std::string("Storage"), std::string("a b"), std::string("a/uid=1"),
                                  std::string("\\303\\244"), std::string("a\\000"), std::string(64, 'a')}) {
    EXPECT_THAT(ErrorsIn("tenant {\n name: \"" + name + "\"\n match { uid: 1 }\n}"),
                ElementsAre("2: a tenant's name must be 1 to 63 characters of a to z, 0 to 9, \"-\", \"_\" and \".\""))
        << name;
  }
  EXPECT_THAT(ErrorsIn("tenant { name: \"" + std::string(59, 'a') + "z-_.\" match { uid: 1 } }"), IsEmpty());
}

TEST(PolicyRules, ATenantCannotHaveTheNameOfAllOthersInMetrics) {
  EXPECT_THAT(ErrorsIn("tenant {\n name: \"other\" match { uid: 1 } }"),
              ElementsAre("2: a tenant's name cannot be \"other\": metrics use it for all tenants without a name of "
                          "their own"));
  EXPECT_THAT(ErrorsIn("tenant { name: \"others\" match { uid: 1 } }"), IsEmpty());
}

TEST(PolicyRules, ATenantsNameStandsOnce) {
  EXPECT_THAT(ErrorsIn("tenant { name: \"a\" match { uid: 1 } }\n"
                       "tenant { name: \"b\" match { uid: 2 } }\n"
                       "tenant {\n name: \"a\" match { uid: 3 } }\n"),
              ElementsAre("4: tenant \"a\" is already defined in line 1"));
}

TEST(PolicyRules, ATenantThatNobodyCanBeIsRefused) {
  EXPECT_THAT(ErrorsIn("tenant { name: \"a\" match { uid: 1 } }\ntenant { name: \"b\" }\ndefault_tenant: \"a\""),
              ElementsAre("2: no caller can match this tenant: it has no match and is not the default_tenant"));
  EXPECT_THAT(ErrorsIn("tenant { name: \"b\" }\ndefault_tenant: \"b\""), IsEmpty());
}

TEST(PolicyRules, ADefaultTenantThatIsNoneIsRefused) {
  EXPECT_THAT(ErrorsIn("tenant { name: \"a\" match { uid: 1 } }\n\ndefault_tenant: \"b\""),
              ElementsAre("3: default_tenant \"b\" is not a tenant of this file"));
}

TEST(PolicyRules, AnEmptyMatchIsRefused) {
  EXPECT_THAT(ErrorsIn("tenant { name: \"a\"\n match { uid: 1 }\n match {}\n}"),
              ElementsAre("3: an empty match matches no caller: give at least one condition"));
}

TEST(PolicyRules, UidZeroIsACondition) { EXPECT_THAT(ErrorsInMatch("uid: 0"), IsEmpty()); }

TEST(PolicyRules, TheUidAndGidThatMeanNobodyAreRefused) {
  EXPECT_THAT(ErrorsInMatch("uid: 4294967295"), ElementsAre("2: 4294967295 is nobody's uid"));
  EXPECT_THAT(ErrorsInMatch("gid: 4294967295"), ElementsAre("2: 4294967295 is nobody's gid"));
}

TEST(PolicyRules, APodUidHasOneOfTwoForms) {
  EXPECT_THAT(ErrorsInMatch("pod_uid: \"0123abcd-0123-4567-89ab-0123456789ab\""), IsEmpty());
  EXPECT_THAT(ErrorsInMatch("pod_uid: \"0123456789abcdef0123456789abcdef\""), IsEmpty());
  for (const char* uid : {"", "0123ABCD-0123-4567-89ab-0123456789ab", "0123abcd_0123_4567_89ab_0123456789ab",
                          "0123abcd-0123-4567-89ab-0123456789a", "0123abcd-0123-4567-89ab-0123456789abc",
                          "0123abcd-0123-4567-89ab-0123456789ag", "0123456789ABCDEF0123456789abcdef",
                          "01234567-0123-4567-89ab0123456789abcd", "--------------------------------", "storage-0"}) {
    EXPECT_THAT(ErrorsInMatch(std::string("pod_uid: \"") + uid + "\""),
                ElementsAre("2: pod_uid must be lower-case hexadecimal digits: 8-4-4-4-12 with dashes, or 32"))
        << uid;
  }
}

TEST(PolicyRules, ASidIsASecurityIdentifier) {
  EXPECT_THAT(ErrorsInMatch("sid: \"S-1-5-32-545\""), IsEmpty());
  EXPECT_THAT(ErrorsInMatch("uid: 0\nsid: \"\""),
              ElementsAre("3: sid must be a security identifier in decimal, such as S-1-5-32-545"));
  EXPECT_THAT(ErrorsInMatch("sid: \"Users\""), SizeIs(1));
}

TEST(PolicyRules, AnEmptyConditionDoesNotMakeAMatchWider) {
  EXPECT_THAT(ErrorsInMatch("uid: 0\npod_namespace: \"\""), ElementsAre("3: pod_namespace is empty: no pod has that"));
  EXPECT_THAT(ErrorsInMatch("uid: 0\npod_uid: \"\""), SizeIs(1));
  EXPECT_THAT(ErrorsInMatch("uid: 0\npod_label { value: \"gold\" }"),
              ElementsAre("3: the key of pod_label is empty: no pod has that"));
}

TEST(PolicyRules, ALabelStandsOnceInAMatch) {
  EXPECT_THAT(ErrorsInMatch("pod_label { key: \"tier\" value: \"gold\" }\npod_label { key: \"tier\" value: \"iron\" }"),
              ElementsAre("3: pod_label \"tier\" appears twice in one match"));
  EXPECT_THAT(ErrorsIn("tenant { name: \"a\" match { pod_label { key: \"tier\" value: \"gold\" } }\n"
                       "match { pod_label { key: \"tier\" value: \"iron\" } } }"),
              IsEmpty());
}

TEST(PolicyRules, ALabelNeedsAValueBeItEmpty) {
  EXPECT_THAT(ErrorsInMatch("pod_label { key: \"tier\" }"),
              ElementsAre("2: pod_label needs a value; write value: \"\" for an empty one"));
  EXPECT_THAT(ErrorsInMatch("pod_label { key: \"tier\" value: \"\" }"), IsEmpty());
}

TEST(PolicyRules, WhatNoPodCanBeCalledIsRefused) {
  const std::string longest(317, 'k');
  for (const std::string& text : {std::string("a\\000b"), std::string("a\\nb"), std::string("\\377"), longest + "k"}) {
    EXPECT_THAT(ErrorsInMatch("pod_namespace: \"" + text + "\""),
                ElementsAre("2: pod_namespace must be at most 317 printable ASCII characters"));
    EXPECT_THAT(ErrorsInMatch("pod_label { key: \"" + text + "\" value: \"v\" }"),
                ElementsAre("2: the key of pod_label must be at most 317 printable ASCII characters"));
    EXPECT_THAT(ErrorsInMatch("pod_label { key: \"k\"\nvalue: \"" + text + "\" }"),
                ElementsAre("3: the value of pod_label must be at most 317 printable ASCII characters"));
  }
  EXPECT_THAT(ErrorsInMatch("pod_label { key: \"" + longest + "\" value: \"v\" }"), IsEmpty());
}

TEST(PolicyRules, ByteLimitsAreWholePages) {
  EXPECT_THAT(ErrorsInTenant("limits {\n pinned_bytes: 4096\n registered_bytes: 4097\n memory_bytes: 1\n}"),
              ElementsAre("4: limits.registered_bytes must be a multiple of 4096, is 4097",
                          "5: limits.memory_bytes must be a multiple of 4096, is 1"));
  EXPECT_THAT(ErrorsInTenant("session_limits {\n pinned_bytes: 4095\n}"),
              ElementsAre("3: session_limits.pinned_bytes must be a multiple of 4096, is 4095"));
}

TEST(PolicyRules, LimitsAboveTheLargestSignedNumberAreRefused) {
  EXPECT_THAT(ErrorsInTenant("limits {\n memory_bytes: 9223372036854775808\n}"),
              ElementsAre("3: limits.memory_bytes must be at most 9223372036854775807, is 9223372036854775808"));
  EXPECT_THAT(ErrorsInTenant("limits {\n memory_bytes: 9223372036854771712\n regions: 9223372036854775807\n}"),
              IsEmpty());
}

TEST(PolicyRules, RatesAboveAThousandMillionAreRefused) {
  EXPECT_THAT(ErrorsInTenant("limits { requests_per_second: 1000000000 }"), IsEmpty());
  EXPECT_THAT(ErrorsInTenant("limits {\n requests_per_second: 1000000001\n}"),
              ElementsAre("3: limits.requests_per_second must be at most 1000000000, is 1000000001"));
}

TEST(PolicyRules, ASessionMayNotHaveMoreThanItsTenant) {
  EXPECT_THAT(ErrorsInTenant("limits { regions: 10 requests_per_second: 5 }\n"
                             "session_limits {\n regions: 11\n requests_per_second: 6\n windows: 7\n}"),
              ElementsAre("4: session_limits.regions must not be above the tenant's 10, is 11",
                          "5: session_limits.requests_per_second must not be above the tenant's 5, is 6"));
  EXPECT_THAT(ErrorsInTenant("limits { regions: 10 }\nsession_limits { regions: 10 }"), IsEmpty());
}

TEST(PolicyRules, SessionsAreNoLimitOfASession) {
  EXPECT_THAT(ErrorsInTenant("session_limits {\n sessions: 1\n}"),
              ElementsAre("3: session_limits.sessions is no limit of a session: it belongs to the tenant's limits"));
}

TEST(PolicyRules, ARoleNeedsARole) {
  EXPECT_THAT(ErrorsIn("\nrole {\n match { uid: 1 }\n}"),
              ElementsAre("2: a role needs its role: CALLER_ROLE_OPERATOR or CALLER_ROLE_DEVICE_PLUGIN"));
  EXPECT_THAT(ErrorsIn("\nrole {\n match { uid: 1 }\n role: CALLER_ROLE_UNSPECIFIED\n}"),
              ElementsAre(StartsWith("4: a role needs its role")));
}

TEST(PolicyRules, ARoleNeedsAMatchThatCanHold) {
  EXPECT_THAT(ErrorsIn("role {\n role: CALLER_ROLE_OPERATOR\n}"), ElementsAre("1: a role needs a match"));
  EXPECT_THAT(ErrorsIn("role {\n role: CALLER_ROLE_OPERATOR\n match {}\n}"),
              ElementsAre("3: an empty match matches no caller: give at least one condition"));
  EXPECT_THAT(ErrorsIn("role { role: CALLER_ROLE_OPERATOR match {\n pod_uid: \"x\"\n} }"),
              ElementsAre(StartsWith("2: pod_uid must be")));
}

TEST(PolicyRules, AMatchOfDoorsMustBeOneThatCanHold) {
  EXPECT_THAT(ErrorsIn("role { role: CALLER_ROLE_OPERATOR match { uid: 1 } }\ndoor {}"),
              ElementsAre("2: an empty match matches no caller: give at least one condition"));
}

TEST(PolicyRules, ARoleDoesNotHangOnWhatTheDevicePluginSays) {
  EXPECT_THAT(ErrorsIn("role { role: CALLER_ROLE_OPERATOR match {\n pod_namespace: \"x\"\n} }"),
              ElementsAre(StartsWith("1: a role cannot depend on")));
  EXPECT_THAT(ErrorsIn("role { role: CALLER_ROLE_DEVICE_PLUGIN match {\n"
                       " uid: 1 pod_label { key: \"a\" value: \"b\" }\n} }"),
              ElementsAre(StartsWith("1: a role cannot depend on")));
}

TEST(PolicyRules, ConnectionsAreRefusedAtTheLineOfTheWrongField) {
  EXPECT_THAT(ErrorsInTenant("connections {\n"
                             "  listen { prefix: \"::/0\" }\n"
                             "  listen { prefix: \"::/0\"\n first_port: 80 last_port: 90 }\n"
                             "  connect: [{ prefix: \"10.98.0.1/16\" },\n"
                             "            { first_port: 1\n last_port: 70000\n prefix: \"::/0\" }]\n"
                             "  accept { prefix: \"::/0\"\n last_port: 7 }\n"
                             "}"),
              ElementsAre("5: connections.listen[1].first_port must be at least 1024, is 80",
                          "6: connections.connect[0].prefix must be an address, or a prefix such as 10.98.0.0/16 "
                          "without bits behind its length, is \"10.98.0.1/16\"",
                          "8: connections.connect[1].last_port must be at most 65535, is 70000",
                          "11: connections.accept[0].last_port must be absent: the peers' ports do not count"));
}

TEST(PolicyRules, ARangeTooManyIsRefusedAtItsLine) {
  std::string lines = "connections {\n";
  for (int index = 0; index < 65; ++index) {
    lines += "accept { prefix: \"::1\" }\n";
  }
  EXPECT_THAT(ErrorsInTenant(lines + "}"), ElementsAre("67: connections.accept must have at most 64 ranges, has 65"));
}

TEST(PolicyRules, AllErrorsAreReportedAtOnceInTheOrderOfLines) {
  EXPECT_THAT(ErrorsIn("default_tenant: \"z\"\n"
                       "tenant {\n"
                       "  name: \"A\"\n"
                       "  limits { memory_bytes: 5 }\n"
                       "  match {}\n"
                       "}\n"
                       "role {}\n"),
              ElementsAre(StartsWith("1: default_tenant"), StartsWith("3: a tenant's name"),
                          StartsWith("4: limits.memory_bytes"), StartsWith("5: an empty match"),
                          StartsWith("7: a role needs its role"), StartsWith("7: a role needs a match")));
  std::string text;
  for (int index = 0; index < 50; ++index) {
    text += "role {}\n";
  }
  EXPECT_THAT(ErrorsIn(text), SizeIs(kParseErrorsMax));
}

TEST(PolicyRules, ErrorsInsideListsAreReportedAtTheirLines) {
  EXPECT_THAT(ErrorsIn("tenant: [\n{ name: \"a\" match: [\n{ uid: 1 },\n{ pod_uid: \"x\" }] },\n"
                       "{\n name: \"B\" match { uid: 2 } }]"),
              ElementsAre(StartsWith("4: pod_uid"), StartsWith("6: a tenant's name")));
}

}  // namespace
}  // namespace rnicd::policy
