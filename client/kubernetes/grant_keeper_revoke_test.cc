// When GrantKeeper revokes, and when it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "client/kubernetes/grant_fixture_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class GrantKeeperRevokeTest : public GrantFixture {
 protected:
  std::string PodOf(uint64_t id) const {
    for (const GrantRecord& record : keeper_->records()) {
      if (record.grant_id == id) {
        return record.pod;
      }
    }
    return "no such grant";
  }

  const std::vector<std::string> d0_ = {"numa0-0000"};
  const std::vector<std::string> d1_ = {"numa0-0001"};
  const std::vector<std::string> d2_ = {"numa0-0002"};
  const std::vector<std::string> both_ = {"numa0-0000", "numa0-0001"};
};

TEST_F(GrantKeeperRevokeTest, AHeldGrantStaysForEver) {
  const std::string secret = Allocate(d0_);
  LookOnce({HeldBy("a", d0_)});
  LookFor(Ms(3'600'000), {HeldBy("a", d0_)});
  EXPECT_TRUE(daemon_.Accepts(secret));
  EXPECT_EQ(PodOf(1), "default/a");
  EXPECT_EQ(file_.Load()->front().pod, "default/a");
}

TEST_F(GrantKeeperRevokeTest, AGrantThatNobodyHoldsIsRevokedExactlyAfterTheGrace) {
  const std::string secret = Allocate(d0_);
  LookOnce({HeldBy("a", d0_)});
  LookOnce({});
  LookFor(Ms(59'999), {});
  EXPECT_TRUE(daemon_.Accepts(secret));
  LookFor(Ms(1), {});
  EXPECT_THAT(DaemonIds(), IsEmpty());
  EXPECT_THAT(keeper_->records(), IsEmpty());
  EXPECT_THAT(*file_.Load(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, OneWhomNobodyEverHeldLikewise) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({});
  LookFor(Ms(59'999), {});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
  LookFor(Ms(1), {});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, BeingHeldAgainBeginsTheGraceAnew) {
  Allocate(d0_);
  LookOnce({});
  for (int round = 0; round < 3; ++round) {
    LookOnce({});
    LookFor(Ms(59'999), {});
    LookOnce({HeldBy("a", d0_)});
  }
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

// The kubelet may not have named the holder yet in the answer that is looked at.
TEST_F(GrantKeeperRevokeTest, TheFirstLookDoesNotJudgeANewGrant) {
  options_.grace = Ms(0);
  StartPlugin();
  Allocate(d0_);
  LookOnce({});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
  LookOnce({});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

// The answer is older than the grant, and the device was given to another pod in between.
TEST_F(GrantKeeperRevokeTest, AnOldAnswerDoesNotGiveANewGrantToAnEarlierPod) {
  Allocate(d0_);
  LookOnce({HeldBy("a", d0_)});
  LookOnce({HeldBy("a", d0_)});
  now_ += Ms(1'000);
  Allocate(d0_);
  LookOnce({HeldBy("a", d0_)});
  EXPECT_EQ(PodOf(2), "");
  LookOnce({HeldBy("b", d0_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(2));
  EXPECT_EQ(PodOf(2), "default/b");
}

TEST_F(GrantKeeperRevokeTest, NothingIsRevokedWithoutALook) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({});
  for (int hour = 0; hour < 48; ++hour) {
    now_ += std::chrono::hours(1);
    ASSERT_TRUE(keeper_->Renew(now_).ok());
  }
  LookOnce({});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

TEST_F(GrantKeeperRevokeTest, AClockThatIsSetBackRevokesNothingEarlyNorNever) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({});
  LookFor(Ms(30'000), {});
  now_ -= std::chrono::hours(24 * 365);
  LookOnce({});
  LookFor(Ms(29'999), {});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
  LookFor(Ms(1), {});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, AClockThatIsSetForwardRevokesNothingAtOnce) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({});
  now_ += std::chrono::hours(24 * 365);
  LookOnce({});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

TEST_F(GrantKeeperRevokeTest, ClocksBefore1970DoNoHarm) {
  now_ = WallTime(std::chrono::seconds(-5));
  Allocate(d0_);
  StartPlugin();
  EXPECT_TRUE(load_.ok()) << load_;
}

TEST_F(GrantKeeperRevokeTest, AnotherPodWithOneOfTheDevicesRevokesAtOnce) {
  Allocate(both_);
  LookOnce({});
  LookOnce({HeldBy("a", both_)});
  now_ += Ms(1);
  Allocate(d1_);
  LookOnce({HeldBy("b", d1_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(2));
  LookOnce({HeldBy("b", d1_)});
  EXPECT_EQ(PodOf(2), "default/b");
}

TEST_F(GrantKeeperRevokeTest, APodOfTheSameNameInAnotherNamespaceIsAnother) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({HeldBy("a", d0_)});
  Holder other = HeldBy("a", d0_);
  other.namespace_name = "elsewhere";
  LookOnce({other});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, DevicesOfTheSameNameOfAnotherResourceAreOthers) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({HeldBy("a", d0_)});
  Holder other = HeldBy("b", d0_);
  other.resource = "rnicd.io/memory-1gi";
  LookOnce({HeldBy("a", d0_), other});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

// No kubelet should say so; what it means is not clear, so nothing is revoked.
TEST_F(GrantKeeperRevokeTest, ADeviceOfTwoPodsRevokesNothing) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({HeldBy("a", d0_)});
  LookOnce({HeldBy("b", d0_), HeldBy("a", d0_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

TEST_F(GrantKeeperRevokeTest, InitContainerAndContainerOfAPodBothKeepTheirGrants) {
  Allocate(d0_);
  now_ += Ms(10'000);
  Allocate(d0_);
  LookOnce({HeldBy("a", d0_, "app")});
  LookFor(Ms(3'600'000), {HeldBy("a", d0_, "app")});
  EXPECT_THAT(DaemonIds(), ElementsAre(1, 2));
  LookOnce({});
  LookFor(Ms(60'000), {});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, AnOldGrantOfAPodThatWasNeverSeenGoesWhenAHolderIsSeen) {
  Allocate(d0_);
  now_ += Ms(10'001);
  Allocate(d0_);
  LookOnce({});
  EXPECT_THAT(DaemonIds(), ElementsAre(1, 2));
  LookOnce({HeldBy("b", d0_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(2));
}

// As a StatefulSet makes them: the name is back, the pod is another.
TEST_F(GrantKeeperRevokeTest, AnOldGrantGoesThoughANewPodHasTheNameOfTheOldOne) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({HeldBy("web-0", d0_)});
  now_ += Ms(10'001);
  Allocate(d0_);
  LookOnce({HeldBy("web-0", d0_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(2));
}

TEST_F(GrantKeeperRevokeTest, AnOldGrantGoesHoweverManyCameAfterIt) {
  Allocate(d0_);
  now_ += Ms(8'000);
  Allocate(d0_);
  now_ += Ms(8'000);
  Allocate(d0_);
  LookOnce({});
  LookOnce({HeldBy("b", d0_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(2, 3));
}

TEST_F(GrantKeeperRevokeTest, AnOldGrantGoesThoughTheClockWasSetBackInTheEnd) {
  Allocate(d0_);
  now_ += Ms(20'000);
  Allocate(d0_);
  now_ -= std::chrono::hours(1);
  Allocate(d0_);
  LookOnce({});
  LookOnce({HeldBy("b", d0_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(2, 3));
}

// By time alone the second grant would be the old one.
TEST_F(GrantKeeperRevokeTest, ANewGrantStaysThoughTheClockWasSetBackBeforeIt) {
  Allocate(d0_);
  now_ -= std::chrono::hours(1);
  Allocate(d0_);
  LookOnce({});
  LookOnce({HeldBy("b", d0_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(1, 2));
}

TEST_F(GrantKeeperRevokeTest, ANewPluginRevokesWhatNobodyHolds) {
  Allocate(d0_);
  Allocate(d1_);
  StartPlugin();
  LookOnce({HeldBy("a", d1_)});
  LookFor(Ms(59'999), {HeldBy("a", d1_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(1, 2));
  LookFor(Ms(1), {HeldBy("a", d1_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(2));
}

TEST_F(GrantKeeperRevokeTest, ANewPluginRemembersThePod) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({HeldBy("a", d0_)});
  StartPlugin();
  LookOnce({HeldBy("b", d0_)});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, AGrantThatWasTakenOverIsRevokedInItsTime) {
  Allocate(d0_);
  std::filesystem::remove(Path("grants.json"));
  StartPlugin();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  LookOnce({});
  LookOnce({});
  LookFor(Ms(59'999), {});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
  LookFor(Ms(1), {});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, ADaemonThatIsAwayIsToldLater) {
  Allocate(d0_);
  Allocate(d1_);
  Allocate(d2_);
  LookOnce({});
  LookOnce({HeldBy("a", d0_), HeldBy("a", d1_), HeldBy("a", d2_)});
  const std::vector<Holder> other = {HeldBy("b", d0_), HeldBy("b", d1_), HeldBy("b", d2_)};
  daemon_.GoAwayAfter(1);
  const uint64_t before = daemon_.calls();
  EXPECT_TRUE(IsTransportFailure(Look(other)));
  EXPECT_EQ(daemon_.calls() - before, 2u);
  EXPECT_THAT(KeptIds(), ElementsAre(2, 3));
  EXPECT_EQ(file_.Load()->size(), 2u);
  daemon_.GoAwayAfter(1000);
  daemon_.SetAway(false);
  LookOnce(other);
  EXPECT_THAT(DaemonIds(), IsEmpty());
  EXPECT_THAT(KeptIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, OneRefusalDoesNotKeepOtherGrants) {
  Allocate(d0_);
  Allocate(d1_);
  LookOnce({});
  LookOnce({HeldBy("a", both_)});
  daemon_.RefuseRevoke(1, MakeError(ErrorReason::INTERNAL_FAULT));
  EXPECT_TRUE(FailedWith(Look({HeldBy("b", both_)}), ErrorReason::INTERNAL_FAULT));
  EXPECT_THAT(KeptIds(), ElementsAre(1));
  daemon_.RefuseRevoke(1, absl::OkStatus());
  LookOnce({HeldBy("b", both_)});
  EXPECT_THAT(KeptIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, AGrantThatTheDaemonDoesNotKnowCountsAsRevoked) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({HeldBy("a", d0_)});
  daemon_.Restart();
  LookOnce({HeldBy("b", d0_)});
  EXPECT_THAT(keeper_->records(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, WhatCouldNotBeWrittenIsWrittenTheNextTime) {
  Allocate(d0_);
  LookOnce({});
  LookOnce({HeldBy("a", d0_)});
  std::filesystem::remove_all(folder_);
  EXPECT_FALSE(Look({HeldBy("b", d0_)}).ok());
  EXPECT_THAT(KeptIds(), IsEmpty());
  std::filesystem::create_directory(folder_);
  LookOnce({});
  EXPECT_THAT(Names(), ElementsAre("grants.json"));
}

}  // namespace
}  // namespace rnicd::kubernetes
