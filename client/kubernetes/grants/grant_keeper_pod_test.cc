// Grants of the containers of one pod, whose later ones reuse the devices of its init containers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/kubernetes/grants/grant_fixture_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class GrantKeeperPodTest : public GrantFixture {
 protected:
  // Whether the daemon has these grants, and not those.
  void ExpectOnly(const std::vector<uint64_t>& accepted, const std::vector<uint64_t>& refused) const {
    for (const uint64_t grant : accepted) {
      EXPECT_TRUE(Accepts(daemon_, grant)) << grant;
    }
    for (const uint64_t grant : refused) {
      EXPECT_FALSE(Accepts(daemon_, grant)) << grant;
    }
  }

  // As the checkpoint and the API server name the pod of these devices.
  static Observation PodHas(const std::string& pod_uid, const std::vector<std::string>& device_ids) {
    return {.listed_pods = {"default/a"},
            .checkpoint = {{pod_uid, "init", kResource, device_ids}},
            .cluster = std::vector<ClusterPod>{{.uid = pod_uid, .namespace_name = "default", .name = "a"}}};
  }
  void ObserveOnce(const Observation& seen) { EXPECT_TRUE(Observe(seen).ok()); }

  const std::string pod_ = "2c48913c-b29f-11e7-9350-020968147796";
  const std::string other_pod_ = "0123456789abcdef0123456789abcdef";
  const std::vector<std::string> one_ = {"numa0-0000"};
  const std::vector<std::string> two_ = {"numa0-0000", "numa0-0001"};
};

TEST_F(GrantKeeperPodTest, OnlyTheContainerThatStartedLastHasItsGrant) {
  const uint64_t init = Allocate(one_);
  const uint64_t app = Allocate(two_);
  ExpectOnly({app}, {init});
  ASSERT_TRUE(Start(one_).ok());
  ExpectOnly({init}, {app});
  ASSERT_TRUE(Start(two_).ok());
  ExpectOnly({app}, {init});
  ASSERT_TRUE(Start(one_).ok());
  ExpectOnly({init}, {app});
}

TEST_F(GrantKeeperPodTest, ContainersOfTheSameDevicesShareAGrantWhichIsForThemOnce) {
  const uint64_t init = Allocate(two_);
  EXPECT_EQ(Allocate({"numa0-0001", "numa0-0000"}), init);
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

TEST_F(GrantKeeperPodTest, ASharedGrantIsMadeActiveAgain) {
  const uint64_t first = Allocate(one_);
  const uint64_t second = Allocate(two_);
  EXPECT_EQ(Allocate(one_), first);
  ExpectOnly({first}, {second});
}

TEST_F(GrantKeeperPodTest, ADoorThatAContainerMayHaveIsNeverGivenAgain) {
  const uint64_t started = Allocate(one_);
  ASSERT_TRUE(Start(one_).ok());
  const uint64_t second = Allocate(one_);
  ExpectOnly({second}, {started});
  EXPECT_THAT(keeper_->records(), SizeIs(1));
  keeper_->KubeletConnected();
  const uint64_t third = Allocate(one_);
  ExpectOnly({third}, {started, second});
}

TEST_F(GrantKeeperPodTest, ADoorOfAnEarlierPluginIsNeverGivenAgain) {
  const uint64_t first = Allocate(one_);
  StartPlugin();
  const uint64_t second = Allocate(one_);
  ExpectOnly({second}, {first});
}

// The pod of the first allocation ended before any of its containers began.
TEST_F(GrantKeeperPodTest, ASharedGrantBelongsToThePodThatHasItNow) {
  Allocate(one_);
  ReconcileOnce({});
  ReconcileOnce({HeldBy("a", one_)});
  Allocate(one_);
  StartPlugin();
  ReconcileOnce({HeldBy("b", one_)});
  EXPECT_EQ(keeper_->records().front().pod, "default/b");
  EXPECT_THAT(DaemonIds(), ElementsAre(1));
}

TEST_F(GrantKeeperPodTest, AnAllocationThatFailsHalfWayLeavesNoSharedGrant) {
  const uint64_t grant = Allocate(one_);
  daemon_.GoAwayAfter(0);
  EXPECT_FALSE(keeper_->Allocate(resource_, one_, now_).ok());
  daemon_.GoAwayAfter(1000);
  daemon_.SetAway(false);
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  ExpectOnly({}, {grant});
}

TEST_F(GrantKeeperPodTest, ASuspendedGrantStaysSuspendedOverRestarts) {
  const uint64_t init = Allocate(one_);
  const uint64_t app = Allocate(two_);
  StartPlugin();
  daemon_.Restart();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  ExpectOnly({app}, {init});
  ASSERT_TRUE(Start(one_).ok());
  ExpectOnly({init}, {app});
}

TEST_F(GrantKeeperPodTest, WhatADaemonThatWasAwayStillHasIsRevokedWithTheNextRenewal) {
  const uint64_t init = Allocate(one_);
  const uint64_t app = Allocate(two_);
  daemon_.GoAwayAfter(1);
  EXPECT_FALSE(Start(one_).ok()) << "the daemon lists its grants, and is away";
  daemon_.GoAwayAfter(1000);
  daemon_.SetAway(false);
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  ExpectOnly({init}, {app});
}

TEST_F(GrantKeeperPodTest, BothGrantsAreKeptAsLongAsThePodLives) {
  Allocate(one_);
  Allocate(two_);
  Observation seen{.holders = {HeldBy("a", two_, "app")},
                   .listed_pods = {"default/a"},
                   .checkpoint = {{"u", "init", kResource, one_}, {"u", "app", kResource, two_}}};
  for (int round = 0; round < 100; ++round) {
    now_ += Ms(10'000);
    ASSERT_TRUE(Observe(seen).ok());
  }
  EXPECT_THAT(KeptIds(), ElementsAre(1, 2));
  seen.holders.clear();
  for (int round = 0; round < 7; ++round) {
    now_ += Ms(10'000);
    ASSERT_TRUE(Observe(seen).ok());
  }
  EXPECT_THAT(KeptIds(), IsEmpty());
}

TEST_F(GrantKeeperPodTest, AnInitContainerThatAloneHasUnitsKeepsItsGrant) {
  const uint64_t init = Allocate(one_);
  Observation seen{.listed_pods = {"default/a"},
                   .checkpoint = {{"u", "init", kResource, one_}},
                   .cluster = std::vector<ClusterPod>{{.uid = "u", .namespace_name = "default", .name = "a"}}};
  for (int round = 0; round < 100; ++round) {
    now_ += Ms(10'000);
    ASSERT_TRUE(Observe(seen).ok());
  }
  ExpectOnly({init}, {});
  // The kubelet loses it.
  seen.checkpoint.clear();
  for (int round = 0; round < 100; ++round) {
    now_ += Ms(10'000);
    ASSERT_TRUE(Observe(seen).ok());
  }
  ExpectOnly({init}, {});
  EXPECT_EQ(file_.Load()->front().pod_uid, "u");
}

TEST_F(GrantKeeperPodTest, ADoorIsForItsPodOnlyBeforeItsContainerStarts) {
  const uint64_t grant = Allocate(one_);
  ASSERT_TRUE(Start(one_, pod_).ok());
  EXPECT_TRUE(AcceptsFrom(daemon_, pod_, grant));
  EXPECT_FALSE(AcceptsFrom(daemon_, other_pod_, grant));
  EXPECT_FALSE(AcceptsFrom(daemon_, "", grant));
  EXPECT_EQ(file_.Load()->front().pod_uid, pod_);
}

TEST_F(GrantKeeperPodTest, AGrantIsBoundAgainInANewDaemonByANewPlugin) {
  const uint64_t grant = Allocate(one_);
  ASSERT_TRUE(Start(one_, pod_).ok());
  daemon_.Restart();
  StartPlugin();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_TRUE(AcceptsFrom(daemon_, pod_, grant));
  EXPECT_FALSE(AcceptsFrom(daemon_, "", grant));
}

TEST_F(GrantKeeperPodTest, AGrantWhoseContainerStartedUnannouncedIsBoundByTheNextObservation) {
  const uint64_t grant = Allocate(one_);
  keeper_->KubeletConnected();
  ObserveOnce({});
  EXPECT_TRUE(AcceptsFrom(daemon_, other_pod_, grant));
  ObserveOnce(PodHas(pod_, one_));
  EXPECT_TRUE(AcceptsFrom(daemon_, pod_, grant));
  EXPECT_FALSE(AcceptsFrom(daemon_, other_pod_, grant));
}

// Its pod may end before a container starts; then the devices, and with them the door, go to another one.
TEST_F(GrantKeeperPodTest, AGrantThatNoContainerCanHaveIsBoundToNoPod) {
  const uint64_t grant = Allocate(one_);
  ObserveOnce({});
  ObserveOnce(PodHas(pod_, one_));
  EXPECT_EQ(keeper_->records().front().pod_uid, pod_);
  daemon_.Restart();
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_EQ(Allocate(one_), grant);
  ASSERT_TRUE(Start(one_).ok());
  EXPECT_TRUE(AcceptsFrom(daemon_, other_pod_, grant)) << "not to the earlier one either";
  ASSERT_TRUE(Start(one_, other_pod_).ok());
  EXPECT_TRUE(AcceptsFrom(daemon_, other_pod_, grant));
  EXPECT_FALSE(AcceptsFrom(daemon_, pod_, grant));
}

TEST_F(GrantKeeperPodTest, ContainersOfOnePodWithTheSameDevicesShareABoundGrantWithAReviewAtAnyMoment) {
  const uint64_t init = Allocate(one_);
  ObserveOnce(PodHas(pod_, one_));
  ObserveOnce(PodHas(pod_, one_));
  const uint64_t app = Allocate(one_);
  EXPECT_EQ(app, init);
  for (int start = 0; start < 3; ++start) {
    ObserveOnce(PodHas(pod_, one_));
    ASSERT_TRUE(Start(one_, pod_).ok());
    EXPECT_TRUE(AcceptsFrom(daemon_, pod_, init));
    EXPECT_FALSE(AcceptsFrom(daemon_, "", init));
  }
}

TEST_F(GrantKeeperPodTest, GrantsThatTakeTurnsAreBoundEachTime) {
  const uint64_t init = Allocate(one_);
  const uint64_t app = Allocate(two_);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(Start(one_, pod_).ok());
    ExpectOnly({init}, {app});
    EXPECT_FALSE(AcceptsFrom(daemon_, "", init));
    ASSERT_TRUE(Start(two_, pod_).ok());
    ExpectOnly({app}, {init});
    EXPECT_FALSE(AcceptsFrom(daemon_, "", app));
  }
}

TEST_F(GrantKeeperPodTest, ADaemonThatSeesNoPodsIsAskedOnceAReviewAndStillServes) {
  daemon_.SetQuirks({.sees_no_pods = true});
  const uint64_t first = Allocate(one_);
  const uint64_t second = Allocate({"numa0-0002"});
  ASSERT_TRUE(Start(one_, pod_).ok());
  ASSERT_TRUE(Start({"numa0-0002"}, other_pod_).ok());
  EXPECT_TRUE(AcceptsFrom(daemon_, "", first));
  const std::vector<Holder> holders = {HeldBy("a", one_), HeldBy("b", {"numa0-0002"})};
  ReconcileOnce(holders);
  const uint64_t before = daemon_.calls();
  ReconcileOnce(holders);
  EXPECT_EQ(daemon_.calls() - before, 1U);
  daemon_.SetQuirks({});
  ReconcileOnce(holders);
  EXPECT_FALSE(AcceptsFrom(daemon_, "", first));
  EXPECT_TRUE(AcceptsFrom(daemon_, other_pod_, second));
}

TEST_F(GrantKeeperPodTest, AContainerDoesNotStartBeforeItsGrantIsBound) {
  Allocate(one_);
  daemon_.GoAwayAfter(1);
  EXPECT_TRUE(IsTransportFailure(Start(one_, pod_))) << "the daemon lists its grants, and is away";
}

TEST_F(GrantKeeperPodTest, NoTimeCountsWhileTheApiServerIsAway) {
  const uint64_t init = Allocate(one_);
  const Observation seen{
      .listed_pods = {"default/a"}, .checkpoint = {{"u", "init", kResource, one_}}, .cluster_is_away = true};
  for (int round = 0; round < 100; ++round) {
    now_ += Ms(10'000);
    ASSERT_TRUE(Observe(seen).ok());
  }
  ExpectOnly({init}, {});
}

}  // namespace
}  // namespace rnicd::kubernetes
