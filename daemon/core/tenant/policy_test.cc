#include "daemon/core/tenant/policy.h"

#include <gtest/gtest.h>

#include "daemon/core/session/test_values_test.h"

namespace rnicd::core {
namespace {

Caller CallerOf(uint32_t uid, uint32_t gid) {
  Caller caller;
  caller.uid = uid;
  caller.gid = gid;
  return caller;
}

Caller CallerInPod() {
  Caller caller = CallerOf(1000, 100);
  caller.container.pod_uid = kPod;
  return caller;
}

PodFacts StoragePod() {
  return {.uid = kPod,
          .namespace_name = "storage",
          .name = "osd-7",
          .labels = {{"tier", "gold"}, {"app", "osd"}, {"zone", ""}}};
}

TEST(Matcher, WithoutConditionsMatchesNobody) {
  const PodFacts pod = StoragePod();
  EXPECT_FALSE(Matcher{}.Matches(CallerOf(0, 0), nullptr));
  EXPECT_FALSE(Matcher{}.Matches(CallerInPod(), &pod));
}

TEST(Matcher, MatchesAUidAlsoRoots) {
  EXPECT_TRUE(Matcher{.uid = 1000}.Matches(CallerOf(1000, 5), nullptr));
  EXPECT_FALSE(Matcher{.uid = 1000}.Matches(CallerOf(1001, 5), nullptr));
  EXPECT_TRUE(Matcher{.uid = 0}.Matches(CallerOf(0, 5), nullptr));
  EXPECT_FALSE(Matcher{.uid = 0}.Matches(CallerOf(1, 0), nullptr));
}

TEST(Matcher, MatchesAGid) {
  EXPECT_TRUE(Matcher{.gid = 100}.Matches(CallerOf(1, 100), nullptr));
  EXPECT_FALSE(Matcher{.gid = 100}.Matches(CallerOf(100, 1), nullptr));
}

TEST(Matcher, MatchesTheSidOfTheUserOrOfAGroup) {
  Caller caller = CallerOf(kNoUser, kNoUser);
  caller.sid = "S-1-5-21-1-2-3-1001";
  EXPECT_TRUE(Matcher{.sid = "S-1-5-21-1-2-3-1001"}.Matches(caller, nullptr));
  EXPECT_FALSE(Matcher{.sid = "S-1-5-32-545"}.Matches(caller, nullptr));
  caller.group_sids =
      std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"S-1-1-0", "S-1-5-32-545"});
  EXPECT_TRUE(Matcher{.sid = "S-1-5-32-545"}.Matches(caller, nullptr));
  EXPECT_FALSE((Matcher{.uid = 1, .sid = "S-1-5-32-545"}.Matches(caller, nullptr))) << "each condition must hold";
  EXPECT_FALSE(Matcher{.sid = "S-1-5-32-545"}.Matches(CallerOf(0, 0), nullptr)) << "nobody on Linux has one";
}

TEST(Matcher, MatchesAPodUidWithoutKnowingThePod) {
  EXPECT_TRUE(Matcher{.pod_uid = kPod}.Matches(CallerInPod(), nullptr));
  EXPECT_FALSE(Matcher{.pod_uid = kPod}.Matches(CallerOf(1000, 100), nullptr));
  Caller other = CallerInPod();
  other.container.pod_uid.back() = 'c';
  EXPECT_FALSE(Matcher{.pod_uid = kPod}.Matches(other, nullptr));
}

TEST(Matcher, TheContainersIdIsNoPodUid) {
  Caller caller = CallerOf(1, 1);
  caller.container.id = kPod;
  EXPECT_FALSE(Matcher{.pod_uid = kPod}.Matches(caller, nullptr));
}

TEST(Matcher, MatchesTheNamespaceOfKnownPodsOnly) {
  const PodFacts pod = StoragePod();
  EXPECT_TRUE(Matcher{.pod_namespace = "storage"}.Matches(CallerInPod(), &pod));
  EXPECT_FALSE(Matcher{.pod_namespace = "stor"}.Matches(CallerInPod(), &pod));
  EXPECT_FALSE(Matcher{.pod_namespace = "osd-7"}.Matches(CallerInPod(), &pod)) << "that is its name";
  EXPECT_FALSE(Matcher{.pod_namespace = "storage"}.Matches(CallerInPod(), nullptr));
}

TEST(Matcher, NeedsAllLabelsWithTheirValues) {
  const PodFacts pod = StoragePod();
  const auto matches = [&pod](const std::map<std::string, std::string>& labels) {
    return Matcher{.pod_labels = labels}.Matches(CallerInPod(), &pod);
  };
  EXPECT_TRUE(matches({{"tier", "gold"}}));
  EXPECT_TRUE(matches({{"tier", "gold"}, {"app", "osd"}}));
  EXPECT_FALSE(matches({{"tier", "iron"}}));
  EXPECT_FALSE(matches({{"tier", "gold"}, {"app", "mon"}}));
  EXPECT_FALSE(matches({{"tier", "gold"}, {"team", "a"}}));
  EXPECT_FALSE(matches({{"tie", "gold"}}));
}

TEST(Matcher, AnEmptyLabelMustBeThere) {
  const PodFacts pod = StoragePod();
  EXPECT_TRUE((Matcher{.pod_labels = {{"zone", ""}}}.Matches(CallerInPod(), &pod)));
  EXPECT_FALSE((Matcher{.pod_labels = {{"team", ""}}}.Matches(CallerInPod(), &pod)));
}

TEST(Matcher, LabelsOfAnUnknownPodMatchNothing) {
  EXPECT_FALSE((Matcher{.pod_labels = {{"zone", ""}}}.Matches(CallerInPod(), nullptr)));
}

TEST(Matcher, AllConditionsMustHold) {
  const PodFacts pod = StoragePod();
  const Matcher all{
      .uid = 1000, .gid = 100, .pod_uid = kPod, .pod_namespace = "storage", .pod_labels = {{"tier", "gold"}}};
  EXPECT_TRUE(all.Matches(CallerInPod(), &pod));
  EXPECT_FALSE(all.Matches(CallerInPod(), nullptr));
  EXPECT_FALSE(all.Matches(CallerOf(1000, 100), &pod));

  Matcher wrong_uid = all;
  wrong_uid.uid = 1;
  EXPECT_FALSE(wrong_uid.Matches(CallerInPod(), &pod));
  Matcher wrong_gid = all;
  wrong_gid.gid = 1;
  EXPECT_FALSE(wrong_gid.Matches(CallerInPod(), &pod));
  Matcher wrong_namespace = all;
  wrong_namespace.pod_namespace = "other";
  EXPECT_FALSE(wrong_namespace.Matches(CallerInPod(), &pod));
  Matcher wrong_label = all;
  wrong_label.pod_labels["app"] = "mon";
  EXPECT_FALSE(wrong_label.Matches(CallerInPod(), &pod));
}

}  // namespace
}  // namespace rnicd::core
