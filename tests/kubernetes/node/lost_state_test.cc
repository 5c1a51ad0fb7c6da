// A kubelet without its checkpoint, a pool that became smaller, and a grants.json that cannot be read.
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/kubernetes/node/node_test.h"
#include "tests/support/admin_client.h"

namespace rnicd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class NodeLostState : public KubernetesNode {
 protected:
  // Daemon and plugin restart, with a pool of that many units.
  void ShrinkPoolTo(size_t units) {
    KillPlugin();
    daemon().KillHard();
    StartDaemon();
    LaunchPlugin({absl::StrCat("--pool_bytes=", units * kUnitBytes)});
    ASSERT_TRUE(KubeletSees(units, units)) << plugin().errors().Text();
  }
  // Bytes of the grant whose lowest device is `device`; 0 without one.
  uint64_t GrantedFrom(const std::string& device) {
    for (const v1::GrantInfo& grant : Grants()) {
      if (grant.devices().device_ids(0) == device) {
        return grant.limits().pinned_bytes();
      }
    }
    return 0;
  }
  size_t LinesWith(const std::string& text) {
    const std::string lines = plugin().errors().Text();
    size_t count = 0;
    for (size_t at = lines.find(text); at != std::string::npos; at = lines.find(text, at + 1)) {
      ++count;
    }
    return count;
  }
};

TEST_F(NodeLostState, APodAfterALostCheckpointGetsDevicesThatNoRunningPodHas) {
  StartPlugin({"--revoke_grace_ms=3600000"});
  const auto process = Hold(RunPod("a", 4), 4 * kUnitBytes);
  RestartKubeletWithoutCheckpoint();
  RunPod("b", 4);
  EXPECT_EQ(kubelet().Held(UidOf("b"), "main", kMemory).front(), "any-0004");
  EXPECT_THAT(Grants(), SizeIs(2));
  EXPECT_EQ(Pinned(), 4 * kUnitBytes) << "the running pod's session lives";
  RunPod("c", kUnits - 4);
  EXPECT_THAT(Grants(), SizeIs(2)) << "the kubelet believes that it has as many, so the first pod must lose some";
}

TEST_F(NodeLostState, APodWithoutAKnownGrantIsNoReasonToAvoidDevices) {
  StartPlugin({"--revoke_grace_ms=3600000"});
  RunPod("a", 4);
  kubelet().Remove(UidOf("a"));
  RunPod("b", 4);
  EXPECT_EQ(kubelet().Held(UidOf("b"), "main", kMemory).front(), "any-0000") << "the kubelet knows that they are free";
}

TEST_F(NodeLostState, ARunningPodKeepsItsNameWithoutTheCheckpoint) {
  StartPlugin({"--revoke_grace_ms=3600000"});
  RunPod("a", 4);
  ASSERT_TRUE(Eventually([&] { return FileText("/state/grants.json").find("team/a") != std::string::npos; }));
  ASSERT_TRUE(Eventually([&] { return Grants().at(0).workload().pod_name() == "a"; })) << plugin().errors().Text();
  RestartKubeletWithoutCheckpoint();
  ASSERT_TRUE(PodsAreReported()) << plugin().errors().Text();
  EXPECT_EQ(Grants().at(0).workload().pod_name(), "a");
  EXPECT_EQ(Grants().at(0).workload().container(), "main");
  // A new plugin has it from its file.
  KillPlugin();
  StartPlugin({"--revoke_grace_ms=3600000"});
  ASSERT_TRUE(PodsAreReported()) << plugin().errors().Text();
  EXPECT_EQ(Grants().at(0).workload().pod_name(), "a");
}

TEST_F(NodeLostState, ANewDaemonIsToldNamesThatTheKubeletDoesNotTell) {
  StartPlugin();
  RunPod("a", 4);
  ASSERT_TRUE(Eventually([&] { return FileText("/state/grants.json").find("team/a") != std::string::npos; }));
  ASSERT_TRUE(Eventually([&] { return Grants().at(0).workload().pod_name() == "a"; })) << plugin().errors().Text();
  kubelet().SetPodResourcesAway(true);
  daemon().KillHard();
  StartDaemon();
  EXPECT_TRUE(Eventually([&] {
    const std::vector<v1::GrantInfo> grants = Grants();
    return grants.size() == 1 && grants[0].workload().pod_name() == "a";
  })) << plugin().errors().Text();
}

TEST_F(NodeLostState, ASmallerPoolMakesSmallerGrantsAndIsLoggedOnce) {
  StartPlugin();
  RunPod("a", 4);
  const RunOptions cut = RunPod("b", kUnits - 4);
  ShrinkPoolTo(6);
  ASSERT_TRUE(Eventually([&] { return Grants().size() == 2; })) << plugin().errors().Text();
  EXPECT_EQ(GrantedFrom("any-0000"), 4 * kUnitBytes);
  EXPECT_EQ(GrantedFrom("any-0004"), 2 * kUnitBytes) << "all grants together are not for more than the pool";
  EXPECT_NE(Hold(cut, 2 * kUnitBytes), nullptr);
  ASSERT_TRUE(PodsAreReported());
  ASSERT_TRUE(PodsAreReported());
  EXPECT_EQ(LinesWith("pods hold 10 units of rnicd.io/memory-1mi that this node no longer offers"), 1u)
      << plugin().errors().Text();
}

TEST_F(NodeLostState, AContainerOfWhoseUnitsNothingIsLeftIsToldSo) {
  StartPlugin();
  RunPod("a", 4);
  RunPod("b", 4);
  ShrinkPoolTo(4);
  ASSERT_TRUE(Eventually([&] { return Grants().size() == 1; })) << plugin().errors().Text();
  EXPECT_EQ(GrantedFrom("any-0000"), 4 * kUnitBytes);
  const auto again = kubelet().StartContainer(UidOf("b"), "main");
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("its pool became smaller"));
  EXPECT_TRUE(kubelet().StartContainer(UidOf("a"), "main").ok());
}

TEST_F(NodeLostState, AGrantThatANewDaemonRefusesIsMadeAgainWhenThereIsRoom) {
  StartPlugin();
  const RunOptions container = RunPod("a", 4);
  plugin().Signal(SIGKILL);
  ASSERT_TRUE(plugin().WaitForEnd().has_value());
  daemon().KillHard();
  StartDaemon();
  // Grants of others with as many devices as all grants together may have.
  v1::CreateGrantRequest request;
  request.mutable_devices()->set_resource_name("example.com/other");
  for (int device = 0; device < 10'000; ++device) {
    request.mutable_devices()->add_device_ids(std::to_string(device));
  }
  std::vector<uint64_t> others;
  for (int number = 0; number < 10; ++number) {
    request.set_name(absl::StrCat("other-", number));
    others.push_back(CreateGrant(daemon(), request).response.grant_id());
  }
  LaunchPlugin();
  ASSERT_TRUE(Eventually([&] { return LinesWith("renewing grants") > 0; })) << plugin().errors().Text();
  for (const uint64_t other : others) {
    RevokeGrant(daemon(), other);
  }
  ASSERT_TRUE(Eventually([&] { return Grants().size() == 1; })) << plugin().errors().Text();
  EXPECT_NE(Hold(container, kUnitBytes), nullptr);
}

TEST_F(NodeLostState, AFileOfGrantsThatCannotBeReadDoesNotStopThePlugin) {
  std::ofstream(home() + "/state/grants.json") << "{";
  ASSERT_EQ(chmod((home() + "/state/grants.json").c_str(), 0600), 0);
  StartPlugin();
  EXPECT_THAT(plugin().errors().Text(), HasSubstr("grants.json.bad"));
  RunPod("a", 1);
}

}  // namespace
}  // namespace rnicd::test
