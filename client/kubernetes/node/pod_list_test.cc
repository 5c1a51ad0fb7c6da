#include "client/kubernetes/node/pod_list.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace rnicd::kubernetes {
namespace {

const std::string kUid = "0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11";

ClusterPod Pod(const std::string& uid, const std::string& name) {
  return {.uid = uid, .namespace_name = "n", .name = name, .labels = {{"tier", "gold"}}};
}

TEST(PodList, JoinsHoldersToTheirPod) {
  const std::vector<ClusterPod> pods = {Pod(kUid, "a")};
  const std::vector<Holder> holders = {{"n", "a", "main", "x.io/m", {"any-0000", "any-0001"}},
                                       {"n", "a", "main", "x.io/g", {"any-0000"}},
                                       {"n", "a", "side", "x.io/m", {"any-0002"}}};
  const v1::SetPodsRequest list = PodList(pods, holders);
  ASSERT_EQ(list.pods_size(), 1);
  const v1::PodInfo& pod = list.pods(0);
  EXPECT_EQ(pod.uid(), kUid);
  EXPECT_EQ(pod.namespace_(), "n");
  EXPECT_EQ(pod.name(), "a");
  ASSERT_EQ(pod.labels_size(), 1);
  EXPECT_EQ(pod.labels(0).key() + "=" + pod.labels(0).value(), "tier=gold");
  ASSERT_EQ(pod.containers_size(), 2);
  EXPECT_EQ(pod.containers(0).name(), "main");
  ASSERT_EQ(pod.containers(0).devices_size(), 2);
  EXPECT_EQ(pod.containers(0).devices(0).resource_name(), "x.io/m");
  EXPECT_EQ(pod.containers(0).devices(0).device_ids(1), "any-0001");
  EXPECT_EQ(pod.containers(1).name(), "side");
}

TEST(PodList, KnowsHoldersWithoutACluster) {
  const std::vector<Holder> holders = {{"n", "a", "main", "x.io/m", {"any-0000"}}};
  const v1::SetPodsRequest list = PodList({}, holders);
  ASSERT_EQ(list.pods_size(), 1);
  EXPECT_EQ(list.pods(0).uid(), "");
  EXPECT_EQ(list.pods(0).name(), "a");
  EXPECT_EQ(list.pods(0).containers_size(), 1);
}

TEST(PodList, PodsOfOneNameInTwoNamespacesAreTwo) {
  const std::vector<Holder> holders = {{"n", "a", "main", "x.io/m", {"any-0000"}},
                                       {"o", "a", "main", "x.io/m", {"any-0001"}}};
  EXPECT_EQ(PodList({}, holders).pods_size(), 2);
}

// The daemon refuses the whole list for one invalid pod.
TEST(PodList, LeavesOutWhatTheDaemonWouldRefuse) {
  ClusterPod labelled = Pod(kUid, "many-labels");
  for (int index = 0; index < 100; ++index) {
    labelled.labels.emplace("label-" + std::to_string(index), "");
  }
  std::vector<ClusterPod> pods = {labelled};
  for (const std::string& uid : {std::string(), std::string("UPPER"), kUid + "0", std::string(36, '-'),
                                 std::string(32, 'g'), "0D9E" + kUid.substr(4)}) {
    pods.push_back(Pod(uid, "bad-" + uid));
  }
  const v1::SetPodsRequest list = PodList(pods, {});
  ASSERT_EQ(list.pods_size(), 1);
  EXPECT_EQ(list.pods(0).labels_size(), 64);
}

TEST(PodList, TakesTheUidOfAStaticPod) {
  const std::vector<ClusterPod> pods = {Pod("0123456789abcdef0123456789abcdef", "static")};
  EXPECT_EQ(PodList(pods, {}).pods_size(), 1);
}

}  // namespace
}  // namespace rnicd::kubernetes
