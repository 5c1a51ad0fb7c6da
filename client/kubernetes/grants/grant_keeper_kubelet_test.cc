// What GrantKeeper remembers when the kubelet or the pool does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/kubernetes/grants/grant_fixture_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GrantKeeperKubeletTest : public GrantFixture {
 protected:
  // The kubelet lists the pod without devices, and the API server has it.
  Observation PodIsLost(const std::string& pod) const {
    return {.listed_pods = {"default/" + pod},
            .cluster = std::vector<ClusterPod>{{.uid = "u", .namespace_name = "default", .name = pod, .labels = {}}}};
  }
  Observation PodIsKnown(const std::string& pod) const {
    Observation seen = PodIsLost(pod);
    seen.holders = {HeldBy(pod, one_)};
    seen.checkpoint = {{.pod_uid = "u", .container = "c", .resource = kResource, .device_ids = one_}};
    return seen;
  }
  void ObserveOnce(const Observation& seen) { EXPECT_TRUE(Observe(seen).ok()); }
  // The node offers that many units of each grant.
  void Offer(uint64_t units) {
    options_.offered_bytes = [units](const GrantRecord&) { return std::optional(units * (64 << 20)); };
    StartPlugin();
  }

  const std::vector<std::string> one_ = {"numa0-0000"};
  const std::vector<std::string> two_ = {"numa0-0001", "numa0-0002"};
};

TEST_F(GrantKeeperKubeletTest, DevicesThatTheRunningKubeletAllocatedAreItsOwnBusiness) {
  Allocate(one_);
  EXPECT_THAT(keeper_->DevicesToAvoid(kResource), IsEmpty());
  ObserveOnce({});
  ObserveOnce({});
  EXPECT_THAT(keeper_->DevicesToAvoid(kResource), IsEmpty()) << "it says that the pod is gone, and knows";
}

TEST_F(GrantKeeperKubeletTest, DevicesAreAvoidedUntilANewKubeletNamesTheirContainer) {
  Allocate(one_);
  Allocate(two_);
  keeper_->KubeletConnected();
  EXPECT_THAT(keeper_->DevicesToAvoid(kResource), ElementsAre("numa0-0000", "numa0-0001", "numa0-0002"));
  EXPECT_THAT(keeper_->DevicesToAvoid("rnicd.io/memory-1gi"), IsEmpty());
  ObserveOnce(PodIsKnown("a"));
  EXPECT_THAT(keeper_->DevicesToAvoid(kResource), ElementsAre("numa0-0000", "numa0-0001", "numa0-0002"))
      << "the observation may be of the kubelet before it";
  ObserveOnce(PodIsKnown("a"));
  EXPECT_THAT(keeper_->DevicesToAvoid(kResource), ElementsAre("numa0-0001", "numa0-0002"));
}

TEST_F(GrantKeeperKubeletTest, DevicesOfAContainerThatTheKubeletLostAreAvoidedWhileItsPodLives) {
  Allocate(one_);
  ObserveOnce({});
  ObserveOnce(PodIsKnown("a"));
  keeper_->KubeletConnected();
  for (int round = 0; round < 100; ++round) {
    now_ += Ms(10'000);
    ObserveOnce(PodIsLost("a"));
  }
  EXPECT_THAT(keeper_->DevicesToAvoid(kResource), ElementsAre("numa0-0000"));
}

TEST_F(GrantKeeperKubeletTest, DevicesOfAnInitContainerThatTheCheckpointNamesAreNotAvoided) {
  Allocate(one_);
  keeper_->KubeletConnected();
  ObserveOnce({});
  Observation seen = PodIsLost("a");
  seen.checkpoint = {{.pod_uid = "u", .container = "init", .resource = kResource, .device_ids = one_}};
  ObserveOnce(seen);
  EXPECT_THAT(keeper_->DevicesToAvoid(kResource), IsEmpty());
}

TEST_F(GrantKeeperKubeletTest, ANewPluginDoesNotKnowWhatTheKubeletKnows) {
  Allocate(one_);
  StartPlugin();
  EXPECT_THAT(keeper_->DevicesToAvoid(kResource), ElementsAre("numa0-0000"));
}

TEST_F(GrantKeeperKubeletTest, TheContainerIsRememberedWhenTheKubeletForgetsIt) {
  Allocate(one_);
  ObserveOnce({});
  ObserveOnce(PodIsKnown("a"));
  ObserveOnce(PodIsLost("a"));
  StartPlugin();
  ObserveOnce(PodIsLost("a"));
  const GrantRecord record = keeper_->records().front();
  EXPECT_EQ(record.pod, "default/a");
  EXPECT_EQ(record.container, "c");
  EXPECT_EQ(file_.Load()->front().container, "c");
}

TEST_F(GrantKeeperKubeletTest, AGrantThatIsAllocatedAgainForgetsItsContainer) {
  Allocate(one_);
  ObserveOnce({});
  ObserveOnce({.holders = {HeldBy("a", one_)}});
  Allocate(one_);
  EXPECT_EQ(keeper_->records().front().container, "");
}

TEST_F(GrantKeeperKubeletTest, AGrantIsRenewedForWhatTheNodeStillOffers) {
  const uint64_t grant = Allocate(two_);
  daemon_.Restart();
  Offer(1);
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_TRUE(Accepts(daemon_, grant));
  const v1::CreateGrantRequest request = daemon_.grants().begin()->second.request;
  EXPECT_EQ(request.limits().pinned_bytes(), 64u << 20);
  EXPECT_EQ(request.limits().registered_bytes(), 256u << 20);
  EXPECT_THAT(request.devices().device_ids(), ElementsAre("numa0-0001", "numa0-0002"));
  EXPECT_EQ(file_.Load()->front().limits.pinned_bytes(), 128u << 20) << "a pool that grows again gives all back";
}

TEST_F(GrantKeeperKubeletTest, AGrantOfWhichNothingIsOfferedWaitsForALargerPool) {
  const uint64_t grant = Allocate(one_);
  daemon_.Restart();
  Offer(0);
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_THAT(DaemonIds(), IsEmpty());
  EXPECT_THAT(KeptIds(), ElementsAre(1));
  const absl::Status start = Start(one_);
  EXPECT_TRUE(absl::IsFailedPrecondition(start));
  EXPECT_THAT(start.message(), HasSubstr("pool became smaller"));
  Offer(1);
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_TRUE(Accepts(daemon_, grant));
  EXPECT_TRUE(Start(one_).ok());
}

TEST_F(GrantKeeperKubeletTest, AGrantThatTheDaemonStillHasIsLeftAlone) {
  const uint64_t grant = Allocate(two_);
  Offer(0);
  ASSERT_TRUE(keeper_->Renew(now_).ok());
  EXPECT_TRUE(Accepts(daemon_, grant));
  EXPECT_EQ(daemon_.grants().begin()->second.request.limits().pinned_bytes(), 128u << 20);
  EXPECT_TRUE(Start(two_).ok());
}

TEST_F(GrantKeeperKubeletTest, ASmallerPoolIsLoggedOnceForEachGrant) {
  Allocate(one_);
  Allocate(two_);
  daemon_.Restart();
  options_.offered_bytes = [](const GrantRecord& record) {
    return std::optional<uint64_t>(record.device_ids.size() == 1 ? 0 : 64 << 20);
  };
  const log::Logger logger({.level = log::Level::kWarning});
  GrantKeeper keeper(daemon_, file_, random_, logger, options_);
  ASSERT_TRUE(keeper.Load().ok());
  testing::internal::CaptureStderr();
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(keeper.Renew(now_).ok());
  }
  EXPECT_TRUE(logger.FlushUntil(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("offers none of its devices any more"));
  EXPECT_THAT(lines, HasSubstr("is for less than before"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2) << lines;
}

}  // namespace
}  // namespace rnicd::kubernetes
