// When GrantKeeper revokes, and when it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "client/kubernetes/grants/grant_fixture_test.h"

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
  const uint64_t grant = Allocate(d0_);
  ReconcileOnce({HeldBy("a", d0_)});
  ReconcileFor(Ms(3'600'000), {HeldBy("a", d0_)});
  EXPECT_TRUE(Accepts(daemon_, grant));
  EXPECT_EQ(PodOf(1), "default/a");
  EXPECT_EQ(file_.Load()->front().pod, "default/a");
}

TEST_F(GrantKeeperRevokeTest, AGrantThatNobodyHoldsIsRevokedExactlyAfterTheGrace) {
  const uint64_t grant = Allocate(d0_);
  ReconcileOnce({HeldBy("a", d0_)});
  ReconcileOnce({});
  ReconcileFor(Ms(59'999), {});
  EXPECT_TRUE(Accepts(daemon_, grant));
  ReconcileFor(Ms(1), {});
  EXPECT_THAT(DaemonIds(), IsEmpty());
  EXPECT_THAT(keeper_->records(), IsEmpty());
  EXPECT_THAT(*file_.Load(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, AGrantThatWasNeverHeldIsRevokedAfterTheGrace) {
  Allocate(d0_);
  ReconcileOnce({});
  ReconcileOnce({});
  ReconcileFor(Ms(59'999), {});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
  ReconcileFor(Ms(1), {});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, BeingHeldAgainBeginsTheGraceAnew) {
  Allocate(d0_);
  ReconcileOnce({});
  for (int round = 0; round < 3; ++round) {
    ReconcileOnce({});
    ReconcileFor(Ms(59'999), {});
    ReconcileOnce({HeldBy("a", d0_)});
  }
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

// The response may be older than the kubelet's knowledge of the holder.
TEST_F(GrantKeeperRevokeTest, TheFirstReviewDoesNotRevokeANewGrant) {
  options_.grace = Ms(0);
  StartPlugin();
  Allocate(d0_);
  ReconcileOnce({});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
  ReconcileOnce({});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

// The response is older than the grant, and the device was allocated to another pod in between.
TEST_F(GrantKeeperRevokeTest, AnOldAnswerDoesNotGiveANewGrantToAnEarlierPod) {
  Allocate(d0_);
  ASSERT_TRUE(Start(d0_).ok());
  ReconcileOnce({HeldBy("a", d0_)});
  ReconcileOnce({HeldBy("a", d0_)});
  Allocate(d0_);
  ReconcileOnce({HeldBy("a", d0_)});
  EXPECT_EQ(PodOf(2), "");
  ReconcileOnce({HeldBy("b", d0_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(2));
  EXPECT_EQ(PodOf(2), "default/b");
}

TEST_F(GrantKeeperRevokeTest, NothingIsRevokedWithoutAReview) {
  Allocate(d0_);
  ReconcileOnce({});
  ReconcileOnce({});
  for (int hour = 0; hour < 48; ++hour) {
    now_ += std::chrono::hours(1);
    ASSERT_TRUE(keeper_->Renew(now_).ok());
  }
  ReconcileOnce({});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

TEST_F(GrantKeeperRevokeTest, AClockThatIsSetBackRevokesNothingEarlyNorNever) {
  Allocate(d0_);
  ReconcileOnce({});
  ReconcileOnce({});
  ReconcileFor(Ms(30'000), {});
  now_ -= std::chrono::hours(24 * 365);
  ReconcileOnce({});
  ReconcileFor(Ms(29'999), {});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
  ReconcileFor(Ms(1), {});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, AClockThatIsSetForwardRevokesNothingAtOnce) {
  Allocate(d0_);
  ReconcileOnce({});
  ReconcileOnce({});
  now_ += std::chrono::hours(24 * 365);
  ReconcileOnce({});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

TEST_F(GrantKeeperRevokeTest, ClocksBefore1970DoNoHarm) {
  now_ = WallTime(std::chrono::seconds(-5));
  Allocate(d0_);
  StartPlugin();
  EXPECT_TRUE(load_.ok()) << load_;
}

TEST_F(GrantKeeperRevokeTest, ADeviceThatIsAllocatedAgainRevokesBeforeTheNewDoorIsGiven) {
  const uint64_t first = Allocate(both_);
  ASSERT_TRUE(Start(both_).ok());
  daemon_.RefuseRevoke(1, MakeError(ErrorReason::INTERNAL_FAULT));
  EXPECT_FALSE(keeper_->Allocate(resource_, d1_, now_).ok());
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
  daemon_.RefuseRevoke(1, absl::OkStatus());
  const uint64_t second = Allocate(d1_);
  EXPECT_FALSE(Accepts(daemon_, first));
  EXPECT_TRUE(Accepts(daemon_, second));
}

TEST_F(GrantKeeperRevokeTest, AGrantOfADeadPodIsNotCreditedToThePodThatHasItsDevicesNow) {
  Allocate(both_);
  ASSERT_TRUE(Start(both_).ok());
  Allocate(d1_);
  ReconcileOnce({HeldBy("b", d1_)});
  ReconcileOnce({HeldBy("b", d1_)});
  ReconcileFor(Ms(60'000), {HeldBy("b", d1_)});
  EXPECT_THAT(KeptIds(), ElementsAre(2));
  EXPECT_EQ(PodOf(2), "default/b");
}

TEST_F(GrantKeeperRevokeTest, AGrantOfAnObservedPodGoesWithTheFirstReviewThatShowsItsDevicesWithAnother) {
  Allocate(both_);
  ReconcileOnce({});
  ReconcileOnce({HeldBy("a", both_)});
  Allocate(d1_);
  ReconcileOnce({HeldBy("b", d1_)});
  EXPECT_THAT(KeptIds(), ElementsAre(2));
}

TEST_F(GrantKeeperRevokeTest, APodOfTheSameNameInAnotherNamespaceIsAnother) {
  Allocate(d0_);
  ReconcileOnce({});
  ReconcileOnce({HeldBy("a", d0_)});
  Holder other = HeldBy("a", d0_);
  other.namespace_name = "elsewhere";
  ReconcileOnce({other});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, DevicesOfTheSameNameOfAnotherResourceAreOthers) {
  Allocate(d0_);
  ReconcileOnce({});
  ReconcileOnce({HeldBy("a", d0_)});
  Holder other = HeldBy("b", d0_);
  other.resource = "rnicd.io/memory-1gi";
  ReconcileOnce({HeldBy("a", d0_), other});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
  ReconcileOnce({other});
  EXPECT_THAT(DaemonIds(), ElementsAre(1)) << "it has its grace";
}

// No kubelet should report this; its meaning is unclear, so nothing is revoked.
TEST_F(GrantKeeperRevokeTest, ADeviceOfTwoPodsRevokesNothing) {
  Allocate(d0_);
  ReconcileOnce({});
  ReconcileOnce({HeldBy("a", d0_)});
  ReconcileOnce({HeldBy("b", d0_), HeldBy("a", d0_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

TEST_F(GrantKeeperRevokeTest, ANewPluginRevokesWhatNobodyHolds) {
  Allocate(d0_);
  Allocate(d1_);
  StartPlugin();
  ReconcileOnce({HeldBy("a", d1_)});
  ReconcileFor(Ms(59'999), {HeldBy("a", d1_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(1, 2));
  ReconcileFor(Ms(1), {HeldBy("a", d1_)});
  EXPECT_THAT(DaemonIds(), ElementsAre(2));
}

TEST_F(GrantKeeperRevokeTest, ANewPluginRemembersThePod) {
  Allocate(d0_);
  ReconcileOnce({});
  ReconcileOnce({HeldBy("a", d0_)});
  StartPlugin();
  ReconcileOnce({HeldBy("b", d0_)});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, AGrantThatWasTakenOverIsRevokedInItsTime) {
  Allocate(d0_);
  std::filesystem::remove(Path("grants.json"));
  StartPlugin();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  ReconcileOnce({});
  ReconcileOnce({});
  ReconcileFor(Ms(59'999), {});
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
  ReconcileFor(Ms(1), {});
  EXPECT_THAT(DaemonIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, ADaemonThatIsAwayIsToldLater) {
  Allocate(d0_);
  Allocate(d1_);
  Allocate(d2_);
  ReconcileOnce({});
  ReconcileOnce({HeldBy("a", d0_), HeldBy("a", d1_), HeldBy("a", d2_)});
  const std::vector<Holder> other = {HeldBy("b", d0_), HeldBy("b", d1_), HeldBy("b", d2_)};
  daemon_.GoAwayAfter(1);
  const uint64_t before = daemon_.calls();
  EXPECT_TRUE(IsTransportFailure(Reconcile(other)));
  EXPECT_EQ(daemon_.calls() - before, 2u);
  EXPECT_THAT(KeptIds(), ElementsAre(2, 3));
  EXPECT_EQ(file_.Load()->size(), 2u);
  daemon_.GoAwayAfter(1000);
  daemon_.SetAway(false);
  ReconcileOnce(other);
  EXPECT_THAT(DaemonIds(), IsEmpty());
  EXPECT_THAT(KeptIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, OneRefusalDoesNotKeepOtherGrants) {
  Allocate(d0_);
  Allocate(d1_);
  ReconcileOnce({});
  ReconcileOnce({HeldBy("a", d0_), HeldBy("a", d1_)});
  daemon_.RefuseRevoke(1, MakeError(ErrorReason::INTERNAL_FAULT));
  EXPECT_TRUE(FailedWith(Reconcile({HeldBy("b", both_)}), ErrorReason::INTERNAL_FAULT));
  EXPECT_THAT(KeptIds(), ElementsAre(1));
  daemon_.RefuseRevoke(1, absl::OkStatus());
  ReconcileOnce({HeldBy("b", both_)});
  EXPECT_THAT(KeptIds(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, AGrantThatTheDaemonDoesNotKnowCountsAsRevoked) {
  Allocate(d0_);
  ReconcileOnce({});
  ReconcileOnce({HeldBy("a", d0_)});
  daemon_.Restart();
  ReconcileOnce({HeldBy("b", d0_)});
  EXPECT_THAT(keeper_->records(), IsEmpty());
}

TEST_F(GrantKeeperRevokeTest, WhatCouldNotBeWrittenIsWrittenTheNextTime) {
  Allocate(d0_);
  ReconcileOnce({});
  ReconcileOnce({HeldBy("a", d0_)});
  std::filesystem::remove_all(folder_);
  EXPECT_FALSE(Reconcile({HeldBy("b", d0_)}).ok());
  EXPECT_THAT(KeptIds(), IsEmpty());
  std::filesystem::create_directory(folder_);
  ReconcileOnce({});
  EXPECT_THAT(Names(), ElementsAre("grants.json"));
}

}  // namespace
}  // namespace rnicd::kubernetes
