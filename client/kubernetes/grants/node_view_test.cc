#include "client/kubernetes/grants/node_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/kubernetes/resources/names_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

GrantRecord GrantFor(std::vector<std::string> ids, const std::string& pod = "", const std::string& uid = "") {
  return {.resource = kMemory, .device_ids = std::move(ids), .pod = pod, .pod_uid = uid, .container = "app"};
}
Holder HeldBy(const std::string& pod, std::vector<std::string> ids) {
  return {.namespace_name = "team", .pod = pod, .container = "app", .resource = kMemory, .device_ids = std::move(ids)};
}
CheckpointEntry EntryOf(const std::string& uid, const std::string& container, std::vector<std::string> ids) {
  return {.pod_uid = uid, .container = container, .resource = kMemory, .device_ids = std::move(ids)};
}
ClusterPod PodOf(const std::string& uid, const std::string& name) {
  return {.uid = uid, .namespace_name = "team", .name = name, .labels = {}};
}
Life LifeOf(const GrantRecord& record, const Observation& observation) {
  return NodeView(observation).HolderOf(record).life;
}

TEST(NodeView, TheHolderIsTheContainerWithExactlyTheDevices) {
  const Observation seen{.holders = {HeldBy("b", {"m-1", "m-0"})}, .checkpoint = {EntryOf("u", "app", {"m-0", "m-1"})}};
  const GrantHolder holder = NodeView(seen).HolderOf(GrantFor({"m-0", "m-1"}));
  EXPECT_EQ(holder.life, Life::kAlive);
  EXPECT_EQ(holder.pod, "team/b");
  EXPECT_EQ(holder.pod_uid, "u");
  EXPECT_EQ(holder.container, "app");
  EXPECT_TRUE(holder.is_known_to_kubelet);
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}), seen), Life::kGone);
  EXPECT_EQ(LifeOf(GrantFor({"m-0", "m-1", "m-2"}), seen), Life::kGone);
}

TEST(NodeView, AnInitContainerLivesWithTheListedContainerOfItsPod) {
  const Observation seen{.holders = {HeldBy("a", {"m-0", "m-1"})},
                         .checkpoint = {EntryOf("u", "init", {"m-0"}), EntryOf("u", "app", {"m-0", "m-1"}),
                                        EntryOf("dead", "app", {"m-1"})}};
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}), seen), Life::kAlive);
  EXPECT_EQ(LifeOf(GrantFor({"m-1"}), seen), Life::kGone) << "the entry of a dead pod stays until the next allocation";
}

TEST(NodeView, AnInitContainerThatAloneHasUnitsLivesWithItsPodInTheCluster) {
  Observation seen{.listed_pods = {"team/a"},
                   .checkpoint = {EntryOf("u", "init", {"m-0"})},
                   .cluster = std::vector<ClusterPod>{PodOf("u", "a")}};
  const GrantHolder holder = NodeView(seen).HolderOf(GrantFor({"m-0"}));
  EXPECT_EQ(holder.life, Life::kAlive);
  EXPECT_EQ(holder.pod, "team/a");
  EXPECT_EQ(holder.pod_uid, "u");
  EXPECT_EQ(holder.container, "init");
  EXPECT_TRUE(holder.is_known_to_kubelet);
  seen.cluster = std::vector<ClusterPod>{PodOf("other", "a")};
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}), seen), Life::kGone) << "a later pod of the same name";
  seen.cluster.reset();
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}), seen), Life::kGone) << "without the API server nothing names the pod";
}

TEST(NodeView, APodThatTheKubeletLostFromItsCheckpointLivesWhileTheClusterHasIt) {
  Observation seen{.listed_pods = {"team/a"}, .cluster = std::vector<ClusterPod>{PodOf("u", "a")}};
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}, "team/a", "u"), seen), Life::kAlive);
  EXPECT_FALSE(NodeView(seen).HolderOf(GrantFor({"m-0"}, "team/a", "u")).is_known_to_kubelet);
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}), seen), Life::kGone) << "never named before";
  seen.cluster->clear();
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}, "team/a", "u"), seen), Life::kGone);
}

TEST(NodeView, WhileTheApiServerIsAwayAPodThatMayLiveIsUndecided) {
  Observation seen{.listed_pods = {"team/a"}, .checkpoint = {EntryOf("u", "init", {"m-0"})}, .cluster_is_away = true};
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}), seen), Life::kUnknown);
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}, "team/a", "u"), seen), Life::kUnknown);
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}, "team/gone", "u"), seen), Life::kGone) << "the kubelet does not list it";
  EXPECT_EQ(LifeOf(GrantFor({"m-9"}), seen), Life::kGone) << "allocated to nobody";
  seen.holders = {HeldBy("a", {"m-5"})};
  EXPECT_EQ(LifeOf(GrantFor({"m-0"}, "team/a", "u"), seen), Life::kGone) << "a later pod of the same name";
}

TEST(NodeView, DevicesBelongToAnotherPodOnlyWhereTheOwnIsKnown) {
  const Observation seen{.holders = {HeldBy("b", {"m-1"})}};
  const NodeView view(seen);
  EXPECT_TRUE(view.HeldByAnother(GrantFor({"m-0", "m-1"}, "team/a")));
  EXPECT_FALSE(view.HeldByAnother(GrantFor({"m-0", "m-1"}, "team/b")));
  EXPECT_FALSE(view.HeldByAnother(GrantFor({"m-0", "m-1"})));
  EXPECT_FALSE(view.HeldByAnother(GrantFor({"m-0"}, "team/a")));
}

TEST(NodeView, InitContainersOfLivingPodsAreHoldersOfWhatNoOtherContainerHas) {
  const Observation seen{
      .holders = {HeldBy("a", {"m-0", "m-1"})},
      .checkpoint = {EntryOf("u", "init", {"m-0"}), EntryOf("v", "init", {"m-2"}), EntryOf("dead", "app", {"m-3"})},
      .cluster = std::vector<ClusterPod>{PodOf("u", "a"), PodOf("v", "b")}};
  const std::vector<Holder> holders = NodeView(seen).Holders({});
  ASSERT_THAT(holders, SizeIs(2));
  EXPECT_EQ(holders[1].namespace_name, "team");
  EXPECT_EQ(holders[1].pod, "b");
  EXPECT_EQ(holders[1].container, "init");
  EXPECT_THAT(holders[1].device_ids, ElementsAre("m-2"));
}

// A kubelet without its checkpoint, or an API server that is away, names no containers that both named before.
TEST(NodeView, ContainersOfGrantsAreHoldersOfWhatNothingElseNames) {
  const Observation seen{.holders = {HeldBy("b", {"m-1"})},
                         .checkpoint = {EntryOf("u", "init", {"m-2"}), EntryOf("v", "init", {"m-4"})},
                         .cluster = std::vector<ClusterPod>{PodOf("u", "c"), PodOf("v", "d")}};
  GrantRecord suspended = GrantFor({"m-4"}, "team/gone");
  suspended.suspended = true;
  GrantRecord of_earlier_release = GrantFor({"m-5"}, "team/e");
  of_earlier_release.container.clear();
  const std::vector<GrantRecord> grants = {GrantFor({"m-0"}, "team/a"), GrantFor({"m-1", "m-3"}, "team/gone"),
                                           GrantFor({"m-2"}, "team/c"), suspended,
                                           of_earlier_release,          GrantFor({"m-6"})};
  const std::vector<Holder> holders = NodeView(seen).Holders(grants);
  EXPECT_THAT(
      holders,
      ElementsAre(
          HeldBy("b", {"m-1"}), HeldBy("a", {"m-0"}), HeldBy("c", {"m-2"}),
          Holder{
              .namespace_name = "team", .pod = "d", .container = "init", .resource = kMemory, .device_ids = {"m-4"}}));
}

}  // namespace
}  // namespace rnicd::kubernetes
